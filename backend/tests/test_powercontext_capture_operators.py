"""What operators see of capture and can do about it: the doctor's lines and the command ``outbox``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, Configure
from powercontext_support.real_server import RealServer

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.capture.outbox import Outbox
from deerflow.agents.memory.backends.powercontext.capture.outbox_models import Heard, Limits
from deerflow.agents.memory.backends.powercontext.capture.selection import Said, Turn
from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main as doctor
from deerflow.agents.memory.backends.powercontext.doctor.capture_checks import storage_folder
from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError
from deerflow.agents.memory.backends.powercontext.outbox import main

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("yaml")

TEXT = "The zebra depot opens at six."


def fill(folder: Path, texts: int = 3) -> Outbox:
    outbox = Outbox(folder, Limits(1000, 1_000_000, 3600))
    outbox.hear([Heard(OWNER, SCOPE, f"t{number}", [Turn((Said("1", "user", TEXT),), answered=False, explicit=False)]) for number in range(texts)])
    return outbox


def test_status_counts_and_shows_nothing_of_what_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outbox = fill(tmp_path)
    outbox.park(outbox.waiting()[0], "invalid_request")
    assert main(["status", "--storage-path", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("waiting: 2\nrefused by PowerContext and kept: 1\n  invalid_request: 1\noldest: ")
    assert "no way to delete a source" in printed
    assert not any(private in printed for private in (TEXT, OWNER, SCOPE, "t1"))


def test_retry_lets_what_was_refused_be_sent_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outbox = fill(tmp_path)
    outbox.park(outbox.waiting()[0], "invalid_request")
    assert main(["retry", "--storage-path", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("1 refused entries wait again")
    assert len(outbox.waiting()) == 3


def test_purge_forgets_what_was_not_sent_and_says_what_it_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outbox = fill(tmp_path)
    assert main(["purge", "--storage-path", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "3 entries forgotten. What was sent stays on the PowerContext server, which has no way to delete a source.\n"
    assert outbox.status().waiting == 0


def test_without_an_outbox_none_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["purge", "--storage-path", str(tmp_path)]) == 0
    assert "There is no outbox" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_an_outbox_that_cannot_be_used_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "powercontext").mkdir()
    (tmp_path / "powercontext" / "outbox.sqlite3").write_bytes(b"something else " * 100)
    assert main(["status", "--storage-path", str(tmp_path)]) == 1
    assert "move it away" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "folder"),
    [({}, "home"), ({"memory": {"backend_config": {}}}, "home"), ({"memory": {"backend_config": {"storage_path": "state"}}}, "home/state"), ({"memory": {"backend_config": {"storage_path": "$PLACE"}}}, "home/here")],
    ids=str,
)
def test_the_storage_folder_is_found_as_deerflow_finds_it(config: dict[str, Any], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PLACE", "here")
    assert storage_folder(config) == (tmp_path / folder).resolve()


def test_without_variables_the_storage_folder_is_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEER_FLOW_HOME", raising=False)
    monkeypatch.setenv("DEER_FLOW_PROJECT_ROOT", str(tmp_path))
    assert storage_folder({}) == (tmp_path / ".deer-flow").resolve()


@pytest.fixture
def diagnosed(powercontext_environment: Configure, powercontext_server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the doctor on a real server and returns the lines about capture."""

    def run(**settings: str | None) -> list[str]:
        config = tmp_path / "config.yaml"
        config.write_text(f"memory: {{manager_class: powercontext, backend_config: {{storage_path: {tmp_path}}}}}")
        powercontext_environment(base_url=powercontext_server.base_url, token=powercontext_server.token, scope_id=powercontext_server.create_scope("doctor of capture"), **settings)
        doctor(["--config", str(config)])
        printed = capsys.readouterr().out
        assert not any(private in printed for private in (TEXT, OWNER, TOKEN))
        return [line for line in printed.splitlines() if line.split()[1] in ("capture", "outbox", "extraction")]

    return run


def test_the_doctor_says_that_capture_is_off(diagnosed: Any) -> None:
    assert diagnosed() == ["ok       capture     off: conversations stay in DeerFlow"]


def test_the_doctor_says_what_is_captured_what_waits_and_that_nothing_comes_of_it(diagnosed: Any, tmp_path: Path) -> None:
    outbox = fill(tmp_path)
    outbox.park(outbox.waiting()[0], "invalid_request")
    [mode, waiting, extraction] = diagnosed(capture="turns")
    assert "PowerContext cannot delete what it was sent" in mode
    assert waiting.startswith("warning  outbox      2 waiting, 1 refused by PowerContext and kept, the oldest for 0 min (invalid_request: ")
    assert extraction.startswith("warning  extraction  this server has no generation model")
    assert extraction.endswith("(0 sources looked through, 0 not yet)")


def test_the_doctor_makes_no_outbox(diagnosed: Any, tmp_path: Path) -> None:
    assert diagnosed(capture="user")[1].startswith("ok       outbox      nothing has been captured yet")
    assert not (tmp_path / "powercontext").exists()


def test_capture_without_a_folder_is_refused_with_the_remedy(powercontext_environment: Configure) -> None:
    powercontext_environment(capture="user")
    with pytest.raises(PowerContextConfigurationError, match="needs a folder for its outbox"):
        PowerContextMemoryManager()
