"""Fixtures for the tests of the doctor in a DeerFlow checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main

from . import OWNER, SCOPE, SET_UP, TOKEN, Configure, RunDoctor


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder laid out like a DeerFlow checkout, with a space in its name."""
    folder = tmp_path / "deer flow"
    (folder / "backend" / "packages" / "harness").mkdir(parents=True)
    (folder / "config.yaml").write_text(SET_UP)
    return folder


@pytest.fixture
def run(powercontext_environment: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDoctor]:
    """Return a function that runs the doctor in an environment without settings, and gives its exit status and its output."""
    for name in ("base_url", "owner_user_id", "scope_id", "token"):
        powercontext_environment(**{name: None})
    for name in ("DEER_FLOW_AUTH_DISABLED", "DEER_FLOW_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)

    def doctor(*options: object, **settings: str | None) -> tuple[int, str]:
        powercontext_environment(**{"base_url": None, "owner_user_id": None, "scope_id": None, "token": None} | settings)
        status = main([str(option) for option in options])
        printed = capsys.readouterr()
        assert not any(private in printed.out + printed.err for private in (OWNER, SCOPE, TOKEN))
        return status, printed.out + printed.err

    yield doctor
    os.environ.clear()
    os.environ.update(before)
