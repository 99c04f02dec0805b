"""`make apply` on a real DeerFlow: what it leaves behind passes DeerFlow's own checks, and `unapply` leaves nothing.

It needs a DeerFlow checkout: POWERCONTEXT_TEST_DEERFLOW names it. A clone of it is changed, not the checkout itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from powercontext_support.overlay import BACKEND, EDITED, MEMORY, ROOT, git, run

DEERFLOW = os.environ.get("POWERCONTEXT_TEST_DEERFLOW")
pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="no git here"),
    pytest.mark.skipif(DEERFLOW is None, reason="no DeerFlow here: POWERCONTEXT_TEST_DEERFLOW names a checkout"),
]


@pytest.fixture
def deerflow(tmp_path: Path) -> Path:
    """Return a clone of the real DeerFlow."""
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{Path(DEERFLOW or '').resolve()}", "deer-flow")
    return tmp_path / "deer-flow"


def command(folder: Path, *arguments: str) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_edit_has_its_place(deerflow: Path) -> None:
    output = run(ROOT, "apply", deerflow)
    assert f"{len(EDITED)} of DeerFlow's own edited" in output
    assert "no place found" not in output
    assert git(deerflow, "diff", "--name-only").splitlines() == sorted(EDITED)


def test_unapply_leaves_a_clean_checkout(deerflow: Path) -> None:
    run(ROOT, "apply", deerflow)
    run(ROOT, "unapply", deerflow)
    assert git(deerflow, "status", "--porcelain", "--ignored") == ""


def test_deerflows_linter_is_content(deerflow: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("no ruff here")
    run(ROOT, "apply", deerflow)
    files = [path for path in git(deerflow, "ls-files", "--others", "--exclude-standard").splitlines() if path.endswith(".py")]
    assert f"{BACKEND}/manager.py" in files
    backend = [path.removeprefix("backend/") for path in files]
    command(deerflow / "backend", str(ruff), "check", "--no-cache", *backend)
    command(deerflow / "backend", str(ruff), "format", "--no-cache", "--check", *backend)


def test_deerflows_check_of_its_guidance_is_content(deerflow: Path) -> None:
    script = deerflow / "scripts/check_agent_guidance.py"
    if not script.exists():
        pytest.skip("this DeerFlow has no check of its guidance")
    before = git(deerflow, "rev-parse", "HEAD").strip()
    run(ROOT, "apply", deerflow)
    git(deerflow, "add", ".")
    git(deerflow, "commit", "--quiet", "--message", "with the backend")
    output = command(deerflow, sys.executable, str(script), "--base-ref", before, "--head-ref", "HEAD", "--strict-warnings")
    assert "0 errors, 0 warnings" in output


def test_the_example_configuration_says_what_it_said(deerflow: Path) -> None:
    before = yaml.safe_load((deerflow / "config.example.yaml").read_text(encoding="utf-8"))
    run(ROOT, "apply", deerflow)
    assert yaml.safe_load((deerflow / "config.example.yaml").read_text(encoding="utf-8")) == before
    assert "# PowerContext example" in (deerflow / "config.example.yaml").read_text(encoding="utf-8")


def test_links_in_the_texts_lead_somewhere(deerflow: Path) -> None:
    run(ROOT, "apply", deerflow)
    assert "](docs/POWERCONTEXT.md)" in (deerflow / "README.md").read_text(encoding="utf-8")
    assert (deerflow / "docs/POWERCONTEXT.md").is_file()
    assert "](powercontext/README.md)" in (deerflow / MEMORY / "backends/README.md").read_text(encoding="utf-8")
    assert (deerflow / BACKEND / "README.md").is_file()
