"""`make apply` and DeerFlow's own files: what is put into them, once, and taken out again without anything else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from powercontext_support.overlay import API, BACKEND, EDITED, MEMORY, ROOT, SCRIPT, TEST, commit, git, run, snapshot, write

pytest_plugins = ("powercontext_support.overlay_fixtures",)
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")

README = "README.md"
EXAMPLE = "config.example.yaml"
LIST = f"{MEMORY}/backends/README.md"
GUIDANCE = f"{MEMORY}/AGENTS.md"


def text(checkout: Path, path: str) -> str:
    return (checkout / path).read_text(encoding="utf-8")


def replace(checkout: Path, path: str, old: str, new: str) -> None:
    content = text(checkout, path)
    assert content.count(old) == 1
    (checkout / path).write_text(content.replace(old, new), encoding="utf-8")


def test_each_file_that_names_backends_names_this_one(project: Path, whole_checkout: Path) -> None:
    assert "8 of DeerFlow's own edited" in run(project, "apply", whole_checkout)
    assert git(whole_checkout, "diff", "--name-only").splitlines() == sorted(EDITED)
    assert "(deermem/noop/powercontext) or path" in text(whole_checkout, EXAMPLE)
    assert "deermem | openviking | powercontext | dotted" in text(whole_checkout, "frontend/src/content/en/application/configuration.mdx")
    assert "| openviking | powercontext | a path" in text(whole_checkout, "frontend/src/content/en/harness/memory.mdx")
    assert "# backend selector: deermem | openviking | powercontext | noop\n\n| `powercontext` | Remote |" in text(whole_checkout, "frontend/src/content/en/harness/memory.mdx")
    assert "- `backends/mem0/`, `backends/openviking/`, `backends/powercontext/`, and others." in text(whole_checkout, GUIDANCE)
    assert "x\n# POWERCONTEXT_DEERFLOW_TOKEN=your-powercontext-bearer-token\n# LAST" in text(whole_checkout, ".env.example")


def test_a_text_stands_behind_what_it_is_like(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    assert re.search(r"h/README\.md\)\.\n\nAn opt-in `powercontext` backend [^#]+\(docs/POWERCONTEXT\.md\)(?:.*\n)+\nThe end\.\n\Z", text(whole_checkout, README))
    assert re.search(r"  one user\.\n- `powercontext/` - (?:.+\n)+\nText\.\n\n## PowerContext Backend\n\n[^#]+\n\n## Reference\n", text(whole_checkout, LIST))
    assert re.search(r"negative ones\.\n\nPowerContext is (?:.+\n)+\n#### Next\n", text(whole_checkout, GUIDANCE))
    assert re.search(r"  # backend_config:\n  #\n  # PowerContext example (?:  #.*\n|.+\n)+?  backend_config:\n    max: 1\n", text(whole_checkout, EXAMPLE))


def test_only_lines_are_added_but_for_the_lists_of_names(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    removed = [line for line in git(whole_checkout, "diff", "-U0").splitlines() if line.startswith("-") and not line.startswith("---")]
    assert len(removed) == 5
    assert all("ackend selector" in line or "`backends/mem0/`" in line for line in removed)


def test_unapply_leaves_deerflows_own_files_as_they_were(project: Path, whole_checkout: Path) -> None:
    (whole_checkout / README).chmod(0o755)
    git(whole_checkout, "commit", "--all", "--quiet", "--message", "mode")
    run(project, "apply", whole_checkout)
    assert "8 of DeerFlow's own edited" in run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""
    assert not (whole_checkout / ".git/powercontext-overlay.json").exists()


def test_a_second_apply_edits_nothing(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    before = snapshot(whole_checkout)
    assert "Nothing to do" in run(project, "apply", whole_checkout)
    assert snapshot(whole_checkout) == before


def test_what_people_write_around_a_text_stays(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    replace(whole_checkout, README, "# DeerFlow\n", "# Our DeerFlow\n")
    replace(whole_checkout, README, "(h/README.md).\n", "(h/README.md). Or ask us.\n")
    replace(whole_checkout, README, "The end.\n", "One more.\n\nThe end.\n")
    replace(whole_checkout, EXAMPLE, "noop/powercontext)", "noop/powercontext/mine)")
    run(project, "unapply", whole_checkout)
    assert text(whole_checkout, README) == EDITED[README].replace("# D", "# Our D").replace("(h/README.md).", "(h/README.md). Or ask us.").replace("The end", "One more.\n\nThe end")
    assert text(whole_checkout, EXAMPLE) == EDITED[EXAMPLE].replace("/noop)", "/noop/mine)")


def test_a_text_that_people_changed_is_theirs_and_is_named(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    replace(whole_checkout, README, "An opt-in `powercontext` backend", "Our `powercontext` backend")
    before = text(whole_checkout, README)
    assert "README.md: our text was changed by hand, and stays as it is." in run(project, "apply", whole_checkout)
    assert text(whole_checkout, README) == before
    assert "README.md: our text was changed by hand, and stays as it is." in run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == f" M {README}\n"
    assert text(whole_checkout, README) == before


def test_a_text_that_people_took_out_is_put_back_by_apply_and_no_matter_for_unapply(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    git(whole_checkout, "checkout", "--", README)
    assert "edited README.md" in run(project, "apply", whole_checkout)
    assert "An opt-in `powercontext` backend" in text(whole_checkout, README)
    git(whole_checkout, "checkout", "--", README)
    assert "edited README.md" not in run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


def test_a_newer_text_replaces_the_older_one(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    for old, new in (("An opt-in `powercontext` backend", "A newer `powercontext` backend"), ('"/powercontext"', '"/newer"')):
        replace(project, f"{SCRIPT}/texts.py", old, new)
    run(project, "apply", whole_checkout)
    assert "A newer `powercontext` backend" in text(whole_checkout, README)
    assert "An opt-in `powercontext` backend" not in text(whole_checkout, README)
    assert "deermem/noop/newer)" in text(whole_checkout, EXAMPLE)
    run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


def test_a_file_that_speaks_of_powercontext_already_gets_nothing(project: Path, whole_checkout: Path) -> None:
    commit(whole_checkout, {README: "PowerContext is a backend.\n"})
    assert "README.md: speaks of PowerContext already; nothing is added." in run(project, "apply", whole_checkout)
    run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("# Another project\n", "no place found for a paragraph on the backend"),
        (None, "is not there"),
        ("[Honcho backend guide](x)\nlatin: \udce4\n", "is not UTF-8; it is left alone"),
        ("[Honcho backend guide](x)\r\nand\n", "has line ends of two kinds; it is left alone"),
    ],
)
def test_where_there_is_no_place_it_says_so_and_goes_on(content: str | None, what: str, project: Path, whole_checkout: Path) -> None:
    (whole_checkout / README).unlink()
    if content is not None:
        (whole_checkout / README).write_bytes(content.encode(errors="surrogateescape"))
    before = snapshot(whole_checkout).get(README)
    output = run(project, "apply", whole_checkout)
    assert f"README.md: {what}." in output
    assert "7 added" in output
    assert "7 of DeerFlow's own edited" in output
    assert snapshot(whole_checkout).get(README) == before
    assert "7 removed" in run(project, "unapply", whole_checkout)


def test_a_link_is_not_followed(project: Path, whole_checkout: Path, tmp_path: Path) -> None:
    (whole_checkout / README).rename(tmp_path / "outside.md")
    (whole_checkout / README).symlink_to(tmp_path / "outside.md")
    assert "README.md: is no plain file; it is left alone." in run(project, "apply", whole_checkout)
    assert (tmp_path / "outside.md").read_text() == EDITED[README]


def test_lines_that_end_as_on_windows_stay_so(project: Path, whole_checkout: Path) -> None:
    commit(whole_checkout, {README: EDITED[README].replace("\n", "\r\n")})
    run(project, "apply", whole_checkout)
    edited = (whole_checkout / README).read_bytes()
    assert b"An opt-in `powercontext` backend" in edited
    assert edited.count(b"\n") == edited.count(b"\r\n")
    run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(("path", "size"), [(GUIDANCE, 40 * 1024), ("scripts/AGENTS.md", 24 * 1024)])
def test_guidance_that_would_grow_over_deerflows_size_stays_as_it_is(path: str, size: int, project: Path, whole_checkout: Path) -> None:
    for free, allowed in ((900, True), (60, False)):
        commit(whole_checkout, {path: EDITED[path] + "x" * (size - len(EDITED[path]) - free)})
        assert ("would make it larger than DeerFlow allows" in run(project, "apply", whole_checkout)) is not allowed
        assert len((whole_checkout / path).read_bytes()) <= size
        run(project, "unapply", whole_checkout)


def test_guidance_counts_with_what_is_above_it(project: Path, whole_checkout: Path) -> None:
    commit(whole_checkout, {f"{Path(MEMORY).parent}/AGENTS.md": "x" * 39 * 1024, "backend/AGENTS.md": "x" * 24 * 1024, "AGENTS.md": "x" * 16 * 1024})
    assert "guidance on the backend would make it" not in run(project, "apply", whole_checkout)
    run(project, "unapply", whole_checkout)
    commit(whole_checkout, {"backend/packages/AGENTS.md": "x" * 1024})
    assert f"{GUIDANCE}: guidance on the backend would make it larger than DeerFlow allows." in run(project, "apply", whole_checkout)


def test_a_dry_run_shows_each_edit_and_makes_none(project: Path, whole_checkout: Path) -> None:
    before = snapshot(whole_checkout)
    output = run(project, "apply", whole_checkout, "--dry-run")
    assert [line.removeprefix("edit ") for line in output.splitlines() if line.startswith("edit ")] == sorted(EDITED)
    assert "-#   manager_class - Backend selector: registered name (deermem/noop) or path\n+#   manager_class - Backend selector: registered name (deermem/noop/powercontext) or path\n" in output
    assert "\n+An opt-in `powercontext` backend" in output
    assert snapshot(whole_checkout) == before
    run(project, "apply", whole_checkout)
    assert "\n-An opt-in `powercontext` backend" in run(project, "unapply", whole_checkout, "--dry-run")


def test_only_files_leaves_deerflows_own_files_alone(project: Path, whole_checkout: Path) -> None:
    assert "0 of DeerFlow's own edited" in run(project, "apply", whole_checkout, "--only-files")
    assert git(whole_checkout, "diff", "--name-only") == ""
    run(project, "apply", whole_checkout)
    assert "8 of DeerFlow's own edited" in run(project, "apply", whole_checkout, "--only-files")  # our texts out again
    assert git(whole_checkout, "diff", "--name-only") == ""


def test_an_edit_that_was_interrupted_can_be_taken_back(project: Path, whole_checkout: Path) -> None:
    commit(whole_checkout, {"frontend/src/content/en/harness/memory.mdx": EDITED["frontend/src/content/en/harness/memory.mdx"] + "x\n" * 40_000})
    command = f'ulimit -f 64; exec "{sys.executable}" "{project / SCRIPT}" apply "{whole_checkout}"'  # files up to 64 blocks, at most 64 KiB
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr[:7]) == (2, "error: ")
    assert "An opt-in `powercontext` backend" in text(whole_checkout, README)
    run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize("entry", [{"../outside.md": []}, {"/etc/hosts": []}, {README: [{"text": 1}]}, {README: [{"other": "x"}]}, {README: ["x"]}, {README: "0"}, {TEST: []}])
def test_a_record_of_edits_that_we_never_make_is_refused(entry: object, project: Path, whole_checkout: Path) -> None:
    (whole_checkout / ".git/powercontext-overlay.json").write_text(json.dumps(entry))
    assert "powercontext-overlay.json is damaged. Delete it" in run(project, "unapply", whole_checkout, "--force", code=2)


def test_a_record_of_an_earlier_version_is_understood(project: Path, whole_checkout: Path) -> None:
    run(project, "apply", whole_checkout)
    record = whole_checkout / ".git/powercontext-overlay.json"
    files = {path: entry for path, entry in json.loads(record.read_text()).items() if isinstance(entry, str)}
    git(whole_checkout, "checkout", "--", ".")
    record.write_text(json.dumps(files))  # as it was before there were edits
    assert "0 added, 0 updated, 0 removed, 8 of DeerFlow's own edited" in run(project, "apply", whole_checkout)
    run(project, "unapply", whole_checkout)
    assert git(whole_checkout, "status", "--porcelain") == ""


def test_names_in_the_texts_are_names_that_exist() -> None:
    texts = (ROOT / SCRIPT / "texts.py").read_text(encoding="utf-8")
    readme = (ROOT / BACKEND / "README.md").read_text(encoding="utf-8")
    assert "powercontext.remember_tool:install" in texts
    assert "\ndef install(" in (ROOT / BACKEND / "remember_tool.py").read_text(encoding="utf-8")
    assert "POWERCONTEXT_DEERFLOW_TOKEN" in texts
    assert "| `POWERCONTEXT_DEERFLOW_TOKEN` |" in readme
    assert (ROOT / "docs/POWERCONTEXT.md").exists()
    assert (ROOT / "backend/tests/blocking_io/test_powercontext_memory_backend.py").exists()
    assert API in (ROOT / SCRIPT / "checkout.py").read_text(encoding="utf-8")


def test_writing_stops_at_nothing_but_what_was_planned(project: Path, whole_checkout: Path) -> None:
    write(whole_checkout, {"notes.md": "[Honcho backend guide](x)\n"})
    run(project, "apply", whole_checkout)
    assert text(whole_checkout, "notes.md") == "[Honcho backend guide](x)\n"
