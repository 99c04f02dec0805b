"""`make apply` and `make unapply`: what gets into a DeerFlow checkout, what is refused, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from powercontext_support.overlay import APPLIED, BACKEND, GUIDE, MANAGER, ROOT, SCRIPT, TEST, git, run, snapshot, write

pytest_plugins = ("powercontext_support.overlay_fixtures",)
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def test_apply_adds_the_backend_its_tests_and_the_guide_and_nothing_else(project: Path, checkout: Path) -> None:
    before = snapshot(checkout)
    assert "7 added" in run(project, "apply", checkout)
    assert git(checkout, "status", "--porcelain", "-uall").splitlines() == [f"?? {path}" for path in APPLIED]
    after = snapshot(checkout)
    assert {path: after[path] for path in before} == before


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


def test_the_files_of_the_flat_version_go_when_the_rooms_come(project: Path, checkout: Path) -> None:
    flat = ["connections", "exchange", "forking", "network", "proxy", "query", "saving", "transport", "words"]
    write(project, [f"{BACKEND}/{name}.py" for name in flat])
    run(project, "apply", checkout)
    write(checkout, [f"{BACKEND}/__pycache__/{name}.cpython-312.pyc" for name in [*flat, "manager"]])
    for name in flat:
        (project / BACKEND / f"{name}.py").unlink()
    rooms = [f"{BACKEND}/{path}.py" for path in ("recall/query", "tools/saving", "transport/__init__", "transport/exchange")]
    write(project, rooms)
    assert "4 added, 0 updated, 9 removed" in run(project, "apply", checkout)
    there = {path.relative_to(checkout / BACKEND).as_posix() for path in (checkout / BACKEND).rglob("*") if path.is_file()}
    assert there == {
        "README.md", "manager.py", "__pycache__/manager.cpython-312.pyc", "recall/query.py", "tools/saving.py", "transport/__init__.py", "transport/exchange.py",
    }  # fmt: skip
    run(project, "unapply", checkout)
    assert git(checkout, "status", "--porcelain", "--ignored", BACKEND) == ""


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


def applied_tests(checkout: Path) -> dict[str, str]:
    """Return the text of each test file that this project, as it is, applies."""
    lines = run(ROOT, "apply", checkout, "--dry-run").splitlines()
    paths = [line.removeprefix("add ") for line in lines if line.startswith("add ")]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if path.startswith("backend/tests/")}


@pytest.mark.parametrize("word", ["devhost", "backend/scripts", "recall_cases", "Makefile", "docs/DESIGN", "pyproject"])
def test_no_test_is_applied_that_needs_what_stays_here(word: str, checkout: Path) -> None:
    assert [path for path, text in applied_tests(checkout).items() if word in text] == []


def test_the_tests_of_the_backend_are_applied(checkout: Path) -> None:
    names = {Path(path).name for path in applied_tests(checkout)}
    subjects = ("client", "connections", "diagnostics", "doctor", "faults", "host", "memory_backend", "proxy", "query", "saving", "settings")
    assert {f"test_powercontext_{subject}.py" for subject in subjects} - names == set()


def test_no_helper_is_applied_that_no_applied_test_uses(checkout: Path) -> None:
    texts = applied_tests(checkout)
    helpers = [Path(path) for path in texts if "powercontext_support/" in path and path.endswith(".py") and not path.endswith("__init__.py")]
    unused = [str(helper) for helper in helpers if not any(helper.stem in text for path, text in texts.items() if Path(path) != helper)]
    assert unused == []


def test_what_stays_here_is_still_there_to_stay(checkout: Path) -> None:
    applied = set(applied_tests(checkout))
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "backend/tests").rglob("*.py")}
    kept = {Path(path).name for path in here - applied if "powercontext" in path}
    assert {"test_powercontext_demo.py", "test_powercontext_overlay.py", "test_powercontext_house_rules.py", "test_powercontext_scripts.py"} <= kept


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize("target", ["apply", "unapply"])
def test_make_without_a_checkout_says_how_to_name_one(target: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DEERFLOW"}
    done = subprocess.run(["make", "-C", str(ROOT), target], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"make {target} DEERFLOW=" in done.stderr


@pytest.mark.skipif(any(shutil.which(name) is None for name in ("make", "iconv")), reason="no make or no iconv here")
@pytest.mark.parametrize(
    ("content", "kept_off"),
    [(b"A=1\n", False), (b"\xff\xfeA\0=\x001\0", True), (b"A\0=\x001\0", True), (b"# caf\xe9\n", True), (None, True)],
    ids=["good", "UTF-16", "zeros", "Latin-1", "a pipe"],
)
def test_make_doctor_keeps_deerflows_import_off_a_file_it_cannot_read(content: bytes | None, kept_off: bool, tmp_path: Path) -> None:
    (tmp_path / "backend/packages/harness/deerflow/agents/memory/backends/powercontext").mkdir(parents=True)
    os.mkfifo(tmp_path / ".env") if content is None else (tmp_path / ".env").write_bytes(content)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "kept off: $PYTHON_DOTENV_DISABLED."\n')
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_DOTENV_DISABLED"}
    command = ["make", "-C", str(ROOT), "doctor", f"DEERFLOW={tmp_path}", f"HOST_PYTHON={python}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert f"kept off: {'1' if kept_off else ''}.\n" in done.stdout.splitlines(keepends=True)
