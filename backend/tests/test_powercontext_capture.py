"""Capture as the host meets it: what is sent, when, for whom, and what it costs a run."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
from powercontext_support import OWNER, SCOPE, TOKEN, BuildManager
from powercontext_support.replies import error
from powercontext_support.sources import SOURCES, accept, contents, eventually
from powercontext_support.transcripts import MARK, answer, first_turn, user

from deerflow.agents.memory.backends.powercontext.capture.outbox import Outbox
from deerflow.agents.memory.backends.powercontext.capture.outbox_models import Limits

pytest_plugins = ("powercontext_support.fixtures",)

ONE, TWO, THREE = "The depot opens at six.", "The ferry leaves at noon.", "The bakery closes on Mondays."
DEAD = "http://127.0.0.1:9"

Build = Callable[..., Any]


@pytest.fixture
def capturing(powercontext_manager: BuildManager, tmp_path: Path) -> Build:
    """Return a function that builds a manager whose capture is on, with its outbox in ``tmp_path``."""

    def build(base_url: str, **settings: str | None) -> Any:
        return powercontext_manager(base_url, {"storage_path": str(tmp_path)}, **({"capture": "turns"} | settings))

    return build


@pytest.fixture
def taking(powercontext_http: Any) -> Any:
    """Return a server that accepts every source."""
    server = powercontext_http()
    server.decide(SOURCES, accept)
    return server


def outbox(folder: Path) -> Outbox:
    return Outbox(folder, Limits(1000, 1_000_000, 3600))


def turn(text: str, name: str = "a") -> list[Any]:
    return [user(text, name), answer(f"Noted for you: {text}", name)]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name in ("powercontext-capture", "powercontext-delivery")]


OFF = """
import asyncio, sys, threading
from powercontext_support.transcripts import answer, user
from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
manager = PowerContextMemoryManager.from_config({"storage_path": sys.argv[1]})
messages = [user("The depot opens at six.", "a"), answer("Noted.", "a")]
manager.add("t", messages, user_id="alice")
manager.add_nowait("t", messages, user_id="alice")
asyncio.run(manager.aadd("t", messages, user_id="alice"))
print(manager.shutdown_flush(1.0), threading.active_count(), [name for name in sys.modules if "powercontext.capture" in name or name == "sqlite3"])
manager.close()
"""


def test_off_means_no_request_no_file_no_thread_and_no_import(taking: Any, tmp_path: Path) -> None:
    settings = {"BASE_URL": taking.base_url, "OWNER_USER_ID": "alice", "SCOPE_ID": SCOPE}
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), **{f"POWERCONTEXT_DEERFLOW_{name}": value for name, value in settings.items()}}
    result = subprocess.run([sys.executable, "-c", OFF, str(tmp_path)], env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split("\n")[0] == "True 1 []"
    assert list(tmp_path.iterdir()) == []
    assert taking.requests == []


def test_before_the_first_conversation_there_is_no_file_and_no_thread(capturing: Build, tmp_path: Path) -> None:
    manager = capturing(DEAD)
    manager.warm()
    assert manager.shutdown_flush(1.0) is True
    assert (list(tmp_path.iterdir()), threads()) == ([], [])


@pytest.mark.parametrize("stranger", [None, "", "default", "bob", f"{OWNER} ", 7])
def test_nobody_without_a_binding_is_heard(stranger: Any, capturing: Build, tmp_path: Path) -> None:
    capturing(DEAD).add("t", turn(ONE), user_id=stranger)
    assert (list(tmp_path.iterdir()), threads()) == ([], [])


def test_a_turn_becomes_two_sources_in_order(capturing: Build, taking: Any) -> None:
    manager = capturing(taking.base_url)
    manager.add("t", first_turn(ONE, "a") + turn(ONE)[1:], user_id=OWNER)
    assert manager.shutdown_flush(30.0) is True
    [first, second] = [request.json for request in taking.requests_to(SOURCES)]
    assert (first["scope_id"], first["content"], first["metadata"]["role"]) == (SCOPE, ONE, "user")
    assert (second["content"], second["metadata"]["role"]) == (f"Noted for you: {ONE}", "assistant")
    assert {request.headers["Authorization"] for request in taking.requests} == {f"Bearer {TOKEN}"}


def test_only_what_the_user_wrote_is_sent_in_mode_user(capturing: Build, taking: Any) -> None:
    manager = capturing(taking.base_url, capture="user")
    asyncio.run(manager.aadd("t", turn(ONE), user_id=OWNER))
    manager.shutdown_flush(30.0)
    assert contents(taking) == [ONE]


def test_repeats_compaction_and_later_turns_bring_nothing_twice(capturing: Build, taking: Any) -> None:
    manager = capturing(taking.base_url, capture="user")
    for conversation in (turn(ONE), turn(ONE), turn(ONE) + turn(TWO, "b")):
        manager.add("t", conversation, user_id=OWNER)
    manager.add_nowait("t", turn(ONE) + turn(TWO, "b"), user_id=OWNER)
    manager.add("t", turn(TWO, "b") + turn(THREE, "c"), user_id=OWNER)
    assert manager.shutdown_flush(30.0) is True
    assert contents(taking) == [ONE, TWO, THREE]


def test_a_lost_reply_is_cured_by_sending_the_same_again(capturing: Build, powercontext_http: Any) -> None:
    server = powercontext_http()
    failures = iter([error(500, "internal_error"), error(503, "runtime_not_ready")])
    server.decide(SOURCES, lambda request: next(failures, None) or accept(request))
    capturing(server.base_url, capture="user").add("t", turn(ONE), user_id=OWNER)
    assert eventually(lambda: len(server.requests_to(SOURCES)) == 3)
    assert len({request.get_data() for request in server.requests_to(SOURCES)}) == 1


def test_the_order_within_a_thread_holds_and_other_threads_do_not_wait(capturing: Build, powercontext_http: Any) -> None:
    server = powercontext_http()
    failures = iter([error(500, "internal_error")] * 2)
    server.decide(SOURCES, lambda request: (next(failures, None) if request.json["content"] == ONE else None) or accept(request))
    manager = capturing(server.base_url, capture="user")
    for thread, conversation in (("t", turn(ONE)), ("t", turn(ONE) + turn(TWO, "b")), ("u", turn(THREE))):
        manager.add(thread, conversation, user_id=OWNER)
    assert eventually(lambda: len(contents(server)) == 5)
    assert contents(server)[:2] == [ONE, THREE]
    assert [text for text in contents(server) if text != THREE] == [ONE, ONE, ONE, TWO]


def test_what_powercontext_refuses_is_parked_and_the_rest_goes_on(capturing: Build, powercontext_http: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = powercontext_http()
    server.decide(SOURCES, lambda request: error(422, "invalid_request") if request.json["content"] == ONE else accept(request))
    manager = capturing(server.base_url, capture="user")
    manager.add("t", turn(ONE), user_id=OWNER)
    manager.add("t", turn(ONE) + turn(TWO, "b"), user_id=OWNER)
    assert manager.shutdown_flush(30.0) is True
    assert contents(server) == [ONE, TWO]
    assert outbox(tmp_path).status().parked == {"invalid_request": 1}
    assert sum("refused captured text" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("refusal", [error(401, "unauthorized"), error(403, "forbidden"), error(404, "scope_not_found"), error(429, "server_overloaded"), error(413, "some_proxy")], ids=lambda refusal: str(refusal.status))
def test_what_an_operator_or_time_can_cure_is_tried_again(refusal: Any, capturing: Build, powercontext_http: Any, tmp_path: Path) -> None:
    server = powercontext_http()
    failures = iter([refusal])
    server.decide(SOURCES, lambda request: next(failures, None) or accept(request))
    capturing(server.base_url, capture="user").add("t", turn(ONE), user_id=OWNER)
    assert eventually(lambda: outbox(tmp_path).status().counts.get("sent") == 1)
    assert contents(server) == [ONE, ONE]


def test_what_waits_from_before_a_restart_is_sent_by_the_start_up_check(capturing: Build, taking: Any, tmp_path: Path) -> None:
    before = capturing(DEAD, capture="user")
    before.add("t", turn(ONE), user_id=OWNER)
    before.close()
    assert outbox(tmp_path).status().waiting == 1
    taking.answer(None, error(404, "not_found"))
    capturing(taking.base_url, capture="user").warm()
    assert eventually(lambda: outbox(tmp_path).status().counts.get("sent") == 1)
    assert contents(taking) == [ONE]


@pytest.mark.parametrize("change", [{"owner_user_id": "somebody-else"}, {"scope_id": "scp_another"}], ids=str)
def test_nothing_is_sent_for_a_person_whose_binding_is_gone_or_leads_elsewhere(change: dict[str, str], capturing: Build, taking: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = capturing(DEAD, capture="user")
    before.add("t", turn(ONE), user_id=OWNER)
    before.close()
    manager = capturing(taking.base_url, capture="user", **change)
    manager.add("u", turn(TWO), user_id=change.get("owner_user_id", OWNER))
    assert manager.shutdown_flush(30.0) is True
    assert contents(taking) == [TWO]
    assert outbox(tmp_path).status().waiting == 1
    assert sum("who have no binding" in record.message for record in caplog.records) == 1


def test_a_full_outbox_says_so_once(capturing: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = capturing(DEAD, capture="user", capture_max_entries="2")
    for number in range(6):
        manager.add(f"t{number}", turn(ONE), user_id=OWNER)
    assert eventually(lambda: outbox(tmp_path).status().counts.get("refused") == 4)
    assert outbox(tmp_path).status().waiting == 2
    assert sum("is full" in record.message for record in caplog.records if record.levelno == logging.WARNING) == 1


def test_a_flush_gives_up_on_a_dead_server_at_once_and_keeps_what_waits(capturing: Build, tmp_path: Path) -> None:
    manager = capturing(DEAD, capture="user")
    for number in range(20):
        manager.add(f"t{number}", turn(ONE), user_id=OWNER)
    started = time.monotonic()
    assert manager.shutdown_flush(60.0) is False
    assert time.monotonic() - started < 30
    assert outbox(tmp_path).status().waiting == 20


def test_after_close_nothing_is_sent_and_what_is_said_is_still_kept(capturing: Build, taking: Any, tmp_path: Path) -> None:
    manager = capturing(taking.base_url, capture="user")
    manager.close()
    manager.close()
    manager.add("t", turn(ONE), user_id=OWNER)
    asyncio.run(manager.aadd("t", turn(ONE) + turn(TWO, "b"), user_id=OWNER))
    assert eventually(lambda: outbox(tmp_path).exists() and outbox(tmp_path).status().waiting == 2)
    assert contents(taking) == []
    assert eventually(lambda: threads() == [])


def test_a_damaged_outbox_stops_capture_loudly_and_no_run(capturing: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "powercontext").mkdir()
    (tmp_path / "powercontext" / "outbox.sqlite3").write_bytes(b"not a database at all " * 200)
    manager = capturing(DEAD)
    for number in range(3):
        manager.add(f"t{number}", turn(ONE), user_id=OWNER)
        asyncio.run(manager.aadd("t", turn(ONE), user_id=OWNER))
        manager.add_nowait("t", turn(ONE), user_id=OWNER)
    assert eventually(lambda: any("capture stops" in record.message for record in caplog.records))
    assert [record.levelname for record in caplog.records if "capture stops" in record.message] == ["ERROR"]


@pytest.mark.parametrize("messages", [None, [], [None], [object()], "text", {"a": 1}, [user(ONE, "a").model_copy(update={"additional_kwargs": 7, "tool_calls": 7})]], ids=lambda value: repr(value)[:20])
def test_messages_of_any_shape_raise_nothing(messages: Any, capturing: Build) -> None:
    manager = capturing(DEAD)
    for thread in ("t", None, "", 7):
        manager.add(thread, messages, user_id=OWNER)
        manager.add_nowait(thread, messages, user_id=OWNER)
        asyncio.run(manager.aadd(thread, messages, user_id=OWNER))


def test_a_call_waits_for_no_server_and_the_loop_for_no_disk(capturing: Build, powercontext_bytes: Any, tmp_path: Path) -> None:
    server = powercontext_bytes(lambda request, peer: peer.stopping.wait(60) and None)
    manager = capturing(server.base_url, capture="user")

    async def hear() -> float:
        started = time.monotonic()
        for number in range(20):
            await manager.aadd(f"t{number}", turn(ONE), user_id=OWNER)
            manager.add_nowait(f"u{number}", turn(ONE)[:1], user_id=OWNER)
        return time.monotonic() - started

    assert asyncio.run(hear()) < 10  # a server that is waited for would take 10 s for the first alone
    assert eventually(lambda: outbox(tmp_path).status().waiting == 40)


def test_a_locked_disk_holds_up_no_run(capturing: Build, tmp_path: Path) -> None:
    outbox(tmp_path).expire()
    other = sqlite3.connect(tmp_path / "powercontext" / "outbox.sqlite3", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    manager = capturing(DEAD, capture="user")
    started = time.monotonic()
    for number in range(20):
        manager.add(f"t{number}", turn(ONE), user_id=OWNER)
    assert time.monotonic() - started < 4  # who waits for the lock waits 5 s for the first alone
    other.close()
    assert eventually(lambda: outbox(tmp_path).status().waiting == 20)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_captures_too(capturing: Build, taking: Any, tmp_path: Path) -> None:
    manager = capturing(taking.base_url, capture="user")
    manager.add("t", turn(ONE), user_id=OWNER)
    pid = os.fork()
    if pid == 0:
        manager.add("u", turn(TWO), user_id=OWNER)
        os._exit(0 if eventually(lambda: outbox(tmp_path).status().counts.get("queued") == 2) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert eventually(lambda: manager.shutdown_flush(30.0) and sorted(contents(taking)) == [ONE, TWO])


def test_the_log_says_what_capture_does_and_nothing_of_what_was_said(capturing: Build, powercontext_http: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = powercontext_http()
    replies = iter([error(500, "internal_error"), error(401, "unauthorized"), error(422, "invalid_request")])
    server.decide(SOURCES, lambda request: next(replies, None) or accept(request))
    manager = capturing(server.base_url)
    for text, name in ((ONE, "a"), (f"password = {MARK}", "b"), (TWO, "c")):
        manager.add("t", turn(text, name), user_id=OWNER)
    assert eventually(lambda: len(contents(server)) >= 5)
    text = "\n".join(f"{record.getMessage()} {record.exc_info}" for record in caplog.records if record.name.startswith("deerflow"))
    assert "cannot delete a source" in text
    assert not any(secret in text for secret in (ONE, TWO, MARK, OWNER, SCOPE, TOKEN, "Server text", json.dumps(ONE)))
