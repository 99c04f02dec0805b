"""`make apply` and `make unapply`: what gets into a DeerFlow checkout, what is refused, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = "backend/scripts/overlay.py"
BACKEND = "backend/packages/harness/deerflow/agents/memory/backends/powercontext"
MANAGER = f"{BACKEND}/manager.py"
TEST = "backend/tests/test_powercontext_client.py"
GUIDE = "docs/POWERCONTEXT.md"
APPLIED = [
    f"{BACKEND}/README.md", MANAGER, "backend/tests/blocking_io/test_powercontext_memory_backend.py", "backend/tests/powercontext_support/captured/1.4.1/a.json",
    TEST, GUIDE, "docs/POWERCONTEXT_zh.md",
]  # fmt: skip
NOT_APPLIED = ["docs/DESIGN.md", "backend/devhost/demo.py", "backend/tests/test_powercontext_demo.py", f"{BACKEND}/__pycache__/a.pyc", f"{BACKEND}/.cache/a"]
DEERFLOW = ["backend/packages/harness/pyproject.toml", *[f"{Path(BACKEND).parents[1]}/{name}" for name in ("manager.py", "backends/__init__.py")], "docs/GUIDE.md", "backend/tests/test_other.py"]

pytestmark = [
    pytest.mark.skipif(not (ROOT / SCRIPT).exists(), reason="the overlay script is not part of a DeerFlow checkout"),
    pytest.mark.skipif(shutil.which("git") is None, reason="no git here"),
]


def write(folder: Path, paths: list[str], text: str = "one\n") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return each path below ``folder``, the record included, with its time and content."""
    found = sorted(path for path in folder.rglob("*") if ".git" not in path.parts or path.name == "powercontext-overlay.json")
    return {str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.read_bytes()) if path.is_file() else (0, b"") for path in found}


def run(project: Path, command: str, *arguments: str | Path, code: int = 0, **environment: str) -> str:
    process = [sys.executable, str(project / SCRIPT), command, *map(str, arguments)]
    done = subprocess.run(process, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a small project like this one, with the real script and the real example configuration."""
    folder = tmp_path / "project"
    write(folder, [*APPLIED, *NOT_APPLIED, SCRIPT])
    for path in (SCRIPT, "config.example.yaml"):
        shutil.copy(ROOT / path, folder / path)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return what the script takes for a DeerFlow checkout, with a path that wants quoting."""
    folder = tmp_path / "deer flow"
    write(folder, DEERFLOW)
    write(folder, [".gitignore"], "__pycache__/\nconfig.yaml\n")
    write(folder, ["config.yaml", *[f"backend/tests/{folder}__pycache__/test_other.cpython-312.pyc" for folder in ("", "blocking_io/")]])
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def test_apply_adds_the_backend_its_tests_and_the_guide_and_nothing_else(project: Path, checkout: Path) -> None:
    before = snapshot(checkout)
    assert "7 added" in run(project, "apply", checkout)
    assert git(checkout, "status", "--porcelain", "-uall").splitlines() == [f"?? {path}" for path in APPLIED]
    after = snapshot(checkout)
    assert {path: after[path] for path in before} == before


def test_apply_says_what_to_put_into_the_configuration_and_the_environment(project: Path, checkout: Path) -> None:
    output = run(project, "apply", checkout)
    assert "\nmemory:\n" in output
    assert "  backend_config: {}" in output
    assert '\nplugins:\n  - use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"' in output
    for name in ("BASE_URL", "OWNER_USER_ID", "SCOPE_ID", "TOKEN"):
        assert f"POWERCONTEXT_DEERFLOW_{name}=" in output


def test_a_second_apply_changes_nothing_and_says_so(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    before = snapshot(checkout)
    assert "Nothing to do" in run(project, "apply", checkout)
    assert snapshot(checkout) == before


def test_a_newer_version_updates_adds_and_removes(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    write(project, [MANAGER, f"{BACKEND}/doctor.py"], "two\n")
    shutil.rmtree(project / "backend/tests/powercontext_support")
    write(checkout, ["backend/tests/powercontext_support/__pycache__/a.cpython-312.pyc"])
    assert "1 added, 1 updated, 1 removed" in run(project, "apply", checkout)
    assert (checkout / MANAGER).read_text() == (checkout / BACKEND / "doctor.py").read_text() == "two\n"
    assert not (checkout / "backend/tests/powercontext_support").exists()
    assert "Nothing to do" in run(project, "apply", checkout)


def test_a_file_deleted_by_hand_is_put_back(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    (checkout / MANAGER).unlink()
    assert "1 added, 0 updated" in run(project, "apply", checkout)
    assert (checkout / MANAGER).read_text() == "one\n"


def test_an_update_that_was_interrupted_can_be_repeated(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    write(project, [MANAGER, TEST], "two\n")
    write(checkout, [MANAGER], "two\n")  # as far as it came
    assert "1 updated" in run(project, "apply", checkout)
    assert "7 removed" in run(project, "unapply", checkout)


def test_an_apply_that_failed_midway_can_be_taken_back(project: Path, checkout: Path) -> None:
    before = git(checkout, "status", "--porcelain", "--ignored")
    write(project, ["docs/POWERCONTEXT_zh.md"], "one\n" * 50_000)
    command = f'ulimit -f 64; exec "{sys.executable}" "{project / SCRIPT}" apply "{checkout}"'  # files up to 64 blocks, at most 64 KiB
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr[:7], (checkout / MANAGER).exists()) == (2, "error: ", True)
    run(project, "unapply", checkout)
    assert git(checkout, "status", "--porcelain", "--ignored") == before


def test_a_file_that_is_not_ours_is_named_and_nothing_changes(project: Path, checkout: Path) -> None:
    write(checkout, [MANAGER, GUIDE], "theirs\n")
    before = snapshot(checkout)
    output = run(project, "apply", checkout, code=1)
    assert f"{MANAGER}: not put there by `make apply`" in output
    assert f"{GUIDE}: not put there by `make apply`" in output
    assert "Nothing was changed" in output
    assert snapshot(checkout) == before


@pytest.mark.parametrize("command", ["apply", "unapply"])
def test_a_file_changed_by_hand_is_named_and_nothing_changes(command: str, project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    write(project, [MANAGER, TEST], "two\n")
    write(checkout, [MANAGER], "mine\n")
    before = snapshot(checkout)
    assert f"{MANAGER}: changed by hand" in run(project, command, checkout, code=1)
    assert snapshot(checkout) == before


def test_a_file_no_longer_ours_but_changed_by_hand_is_named(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    (project / TEST).unlink()
    write(checkout, [TEST], "mine\n")
    assert f"{TEST}: changed by hand" in run(project, "apply", checkout, code=1)
    assert (checkout / TEST).read_text() == "mine\n"


def test_force_overwrites_and_removes_what_was_refused(project: Path, checkout: Path) -> None:
    before = git(checkout, "status", "--porcelain", "--ignored")
    write(checkout, [MANAGER], "theirs\n")
    write(checkout, [TEST])
    run(project, "apply", checkout, "--force")
    assert (checkout / MANAGER).read_text() == "one\n"
    write(checkout, [GUIDE], "mine\n")
    run(project, "unapply", checkout, "--force")
    assert git(checkout, "status", "--porcelain", "--ignored") == before


def test_a_same_file_that_is_not_ours_is_left_alone_by_both(project: Path, checkout: Path) -> None:
    write(checkout, [GUIDE])
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "second")
    assert f"{GUIDE}: was there already, the same" in run(project, "apply", checkout)
    run(project, "unapply", checkout)
    assert git(checkout, "status", "--porcelain") == ""


def test_unapply_leaves_the_checkout_as_it_was(project: Path, checkout: Path) -> None:
    before, status = list(snapshot(checkout)), git(checkout, "status", "--porcelain", "--ignored")
    run(project, "apply", checkout)
    write(checkout, [f"{BACKEND}/__pycache__/manager.cpython-312.pyc", "backend/tests/__pycache__/test_powercontext_client.cpython-312-pytest-9.0.pyc"])
    write(checkout, ["backend/tests/blocking_io/__pycache__/test_powercontext_memory_backend.cpython-312.pyc"])
    assert "7 removed" in run(project, "unapply", checkout)
    assert list(snapshot(checkout)) == before
    assert git(checkout, "status", "--porcelain", "--ignored") == status
    assert "Nothing to do" in run(project, "unapply", checkout)


def test_unapply_keeps_what_others_put_into_our_folders(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    write(checkout, [f"{BACKEND}/notes.txt"])
    run(project, "unapply", checkout)
    assert git(checkout, "status", "--porcelain", "-uall") == f"?? {BACKEND}/notes.txt\n"


def test_unapply_forgets_what_was_deleted_by_hand(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    git(checkout, "clean", "-fd", "--quiet")
    run(project, "unapply", checkout)
    assert git(checkout, "status", "--porcelain") == ""
    assert "Nothing to do" in run(project, "unapply", checkout)


def test_a_dry_run_says_what_would_happen_and_changes_nothing(project: Path, checkout: Path) -> None:
    before = snapshot(checkout)
    output = run(project, "apply", checkout, "--dry-run")
    assert [line for line in output.splitlines() if line.startswith("add ")] == [f"add {path}" for path in APPLIED]
    assert snapshot(checkout) == before
    run(project, "apply", checkout)
    before = snapshot(checkout)
    assert f"remove {MANAGER}" in run(project, "unapply", checkout, "--dry-run")
    assert snapshot(checkout) == before


@pytest.mark.parametrize("path", ["docs", "backend/tests", BACKEND, "backend/tests/__pycache__"])
def test_a_folder_that_is_a_symbolic_link_is_not_followed(path: str, project: Path, checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / path, ignore_errors=True)
    (tmp_path / "outside").mkdir()
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).symlink_to(tmp_path / "outside")
    assert f"{path} is a symbolic link" in run(project, "apply", checkout, "--force", code=1)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(project: Path, checkout: Path, tmp_path: Path) -> None:
    write(tmp_path, ["outside.md"], "one\n")
    (checkout / GUIDE).symlink_to(tmp_path / "outside.md")
    assert f"{GUIDE}: not put there" in run(project, "apply", checkout, code=1)
    run(project, "apply", checkout, "--force")
    assert not (checkout / GUIDE).is_symlink()
    run(project, "unapply", checkout)
    assert (tmp_path / "outside.md").read_text() == "one\n"


def test_a_folder_in_the_place_of_a_file_is_never_touched(project: Path, checkout: Path) -> None:
    (checkout / GUIDE).mkdir()
    assert f"{GUIDE}: is a folder" in run(project, "apply", checkout, "--force", code=1)


@pytest.mark.parametrize(
    ("name", "why"),
    [("nowhere", "does not exist"), ("empty", "has no backend/packages/harness/pyproject.toml"), ("deer flow/backend", "has no backend/"), ("project", "has no backend/")],
)
def test_what_is_not_a_deerflow_checkout_is_refused(name: str, why: str, project: Path, checkout: Path) -> None:
    (checkout.parent / "empty").mkdir()
    output = run(project, "apply", checkout.parent / name, code=2)
    assert why in output
    assert "the top folder of a DeerFlow checkout" in output


def test_a_deerflow_without_git_is_refused(project: Path, checkout: Path) -> None:
    shutil.rmtree(checkout / ".git")
    assert "is not the top of a git checkout" in run(project, "apply", checkout, code=2, GIT_CEILING_DIRECTORIES=str(checkout.parent))
    git(checkout.parent, "init", "--quiet")
    assert "is not the top of a git checkout" in run(project, "apply", checkout, code=2)


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', json.dumps({"docs/POWERCONTEXT/../../../outside.md": "0"}), json.dumps({"docs/GUIDE.md": "0"})])
@pytest.mark.parametrize("command", ["apply", "unapply"])
def test_a_damaged_record_is_refused_with_a_remedy(command: str, text: str, project: Path, checkout: Path) -> None:
    (checkout / ".git/powercontext-overlay.json").write_text(text)
    assert "powercontext-overlay.json is damaged. Delete it" in run(project, command, checkout, "--force", code=2)


def test_each_worktree_has_its_own_record_whatever_git_variables_are_set(project: Path, checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    run(project, "apply", tmp_path / "tree", GIT_DIR=str(checkout / ".git"), GIT_WORK_TREE=str(checkout))
    assert (tmp_path / "tree" / MANAGER).exists()
    assert "Nothing to do" in run(project, "unapply", checkout)
    run(project, "unapply", tmp_path / "tree")
    assert git(tmp_path / "tree", "status", "--porcelain") == ""


def test_no_test_is_applied_that_could_only_be_skipped_there(checkout: Path) -> None:
    lines = run(ROOT, "apply", checkout, "--dry-run").splitlines()
    paths = [line.removeprefix("add ") for line in lines if line.startswith("add ")]
    assert {MANAGER, TEST, "backend/tests/powercontext_support/fixtures.py"} <= set(paths)
    assert [path for path in paths if path.startswith("backend/tests/") and any(word in (ROOT / path).read_text() for word in ("devhost", "backend/scripts"))] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize("target", ["apply", "unapply"])
def test_make_without_a_checkout_says_how_to_name_one(target: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DEERFLOW"}
    done = subprocess.run(["make", "-C", str(ROOT), target], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"make {target} DEERFLOW=" in done.stderr
