"""The scripts that put the backend into a host and test it there; their size, and how they write a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts" / "measuring"

pytestmark = pytest.mark.skipif(not SCRIPTS.exists(), reason="the scripts are not part of a DeerFlow checkout")


def test_a_checkout_without_our_tests_is_told_to_apply_them_first(tmp_path: Path) -> None:
    done = run_host_tests(str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"error: The backend's tests are not in {tmp_path}. Put them there first: make apply DEERFLOW={tmp_path}\n"


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "backend/tests/powercontext_support").mkdir(parents=True)
    done = run_host_tests(str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path}/backend/.venv/bin/python cannot be run (No such file or directory). Run DeerFlow's own")


def test_a_python_that_finds_no_such_deerflow_is_named(tmp_path: Path) -> None:
    (tmp_path / "backend/tests/powercontext_support").mkdir(parents=True)
    done = run_host_tests("--python", sys.executable, str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"error: {sys.executable} cannot import this DeerFlow (ModuleNotFoundError: No module named 'deerflow'). Name the Python it runs with: HOST_PYTHON=\n"


def run_host_tests(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, str(SCRIPTS.parent / "host_tests.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)


def test_a_section_replaces_only_itself(tmp_path: Path) -> None:
    from report import replace_section

    path = tmp_path / "BENCHMARKS.md"
    replace_section("Cost of a recall", "First.", path)
    replace_section("Finding", "Recall: 59 %.", path)
    head = path.read_text(encoding="utf-8").partition("## ")[0]
    replace_section("Cost of a recall", "Second.\n\n### Detail\n\nMore.\n", path)
    assert path.read_text(encoding="utf-8") == f"{head}## Cost of a recall\n\nSecond.\n\n### Detail\n\nMore.\n\n## Finding\n\nRecall: 59 %.\n"
    replace_section("Finding", "Recall: 60 %.", path)
    assert path.read_text(encoding="utf-8").endswith("More.\n\n## Finding\n\nRecall: 60 %.\n")
    assert path.read_text(encoding="utf-8").count("\n## ") == 2


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda script: script.name)
def test_scripts_stay_short(script: Path) -> None:
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 200
