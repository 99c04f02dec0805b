"""Fixtures for the tests of `make apply`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .overlay import APPLIED, DEERFLOW, EDITED, NOT_APPLIED, ROOT, SCRIPT, commit, git, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a small project like this one, with the real command."""
    folder = tmp_path / "project"
    write(folder, [*APPLIED, *NOT_APPLIED])
    shutil.copytree(ROOT / SCRIPT, folder / SCRIPT, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return what the command takes for a DeerFlow checkout, with a path that wants quoting, and no file that it would edit."""
    folder = tmp_path / "deer flow"
    write(folder, DEERFLOW)
    write(folder, ["config.yaml", *[f"backend/tests/{folder}__pycache__/test_other.cpython-312.pyc" for folder in ("", "blocking_io/")]])
    git(folder, "init", "--quiet")
    commit(folder, {})
    return folder


@pytest.fixture
def whole_checkout(checkout: Path) -> Path:
    """Return a checkout that also has the files which the command edits."""
    commit(checkout, EDITED)
    return checkout
