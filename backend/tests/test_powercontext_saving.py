"""Saving against servers that misbehave: every outcome is the truth, whatever happens to the write."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from powercontext_support import Configure, binding
from powercontext_support.byte_server import Peer, Request, Script
from powercontext_support.faults import FAULTS, REPLIES, SCRIPTS, UNENDING
from powercontext_support.replies import REMEMBER, SEARCH, Reply, answer, captured, error, found, record, remembered

from deerflow.agents.memory.backends.powercontext.api.models import ArtifactReference, EntryCitation
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.outcomes import AlreadySaved, NotSaved, Saved, Unknown
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

pytest_plugins = ("powercontext_support.fixtures",)

TEXT = "Order service convention: refund and money amounts are integer cents, never floats."
WORDS = '"Order service convention refund and money amounts are integer cents never floats"'
RECORD = record(TEXT, "convention")
CITATION: Any = RECORD["artifact"]
STORED = answer(remembered(RECORD))
NOTHING = answer(found())
FOUND = answer(found(RECORD))
OLD_CITATION = {"memory_ref": {"family": "memory", "artifact_id": "memory", "revision": 4}, "entry_id": "mem_ent_1", "entry_version_id": "mem_ver_1"}
FOUND_BY_OLD = answer({"mode": "fts", "hits": [{"citation": OLD_CITATION, "text": TEXT, "score": 0.016, "matched_by": ["fts"]}]})
NULL_ENTRY = answer({"memory": {"family": "memory", "artifact_id": "memory", "revision": 4}, "entry": None})

NEW = ArtifactReference(**CITATION)
OLD = EntryCitation.model_validate(OLD_CITATION)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return a function that starts a server: what it does to the write, and its replies to searches, the last one again and again."""

    def start(remember: Reply | Script, *searches: Reply) -> Any:
        replies = searches or (NOTHING,)
        if isinstance(remember, Reply):
            server = request.getfixturevalue("powercontext_http")()
            server.answer(SEARCH, *replies)
            server.answer(REMEMBER, remember)
            return server
        upcoming = chain(replies, repeat(replies[-1]))
        return request.getfixturevalue("powercontext_bytes")(lambda asked, peer: next(upcoming) if asked.path == SEARCH else remember(asked, peer))

    return start


@pytest.fixture
def saver_of(powercontext_environment: Configure) -> Iterator[Callable[..., Saver]]:
    clients = []

    def connect(base_url: str, seconds: float = 1.0) -> Saver:
        powercontext_environment(base_url=base_url, remember_timeout_seconds=str(seconds))
        clients.append(shared_client(load_settings()))
        return Saver(load_settings())

    yield connect
    for client in clients:
        client.close()


def writes(server: Any) -> int:
    return sum(request.path == REMEMBER for request in server.requests)


def test_the_requests_are_those_of_the_design(saver_of: Any, store: Any) -> None:
    server = store(STORED)
    assert saver_of(server.base_url).save(binding(), "convention", f"  {TEXT}\n") == Saved(NEW)
    search, remember = server.requests
    assert search.json == {"scope_id": "scp_4bn20avma1vbh7fc0rxawgxq24", "query": WORDS, "mode": "fts", "limit": 50}
    assert remember.json == {"scope_id": "scp_4bn20avma1vbh7fc0rxawgxq24", "kind": "convention", "text": TEXT}


def test_the_write_has_a_connection_of_its_own(saver_of: Any, store: Any) -> None:
    server = store(lambda request, peer: STORED)
    assert saver_of(server.base_url).save(binding(), "convention", TEXT) == Saved(NEW)
    assert server.connections == 2


@pytest.mark.parametrize(
    ("name", "citation"),
    [("1.4.1", "art_4b0611d9c13b493396b268f6cb0dc61c"), ("1.2.0", "mem_ent_889b58b2bf97485abc40a5927961cd6c")],
)
def test_recorded_answers_are_saved_with_their_exact_citation(name: str, citation: str, saver_of: Any, store: Any) -> None:
    outcome = saver_of(store(captured(name, "remember_memory")).base_url).save(binding(), "convention", TEXT)
    assert isinstance(outcome, Saved)
    assert citation in outcome.citation.model_dump().values()


@pytest.mark.parametrize(
    ("remember", "searches", "outcome"),
    [
        (STORED, [FOUND], AlreadySaved(NEW)),
        (STORED, [answer(found(RECORD | {"state": "forgot"}))], Saved(NEW)),
        (STORED, [answer(found(RECORD | {"kind": "conventiom"}))], Saved(NEW)),
        (STORED, [answer(found(RECORD | {"text": TEXT.replace("floats", "Floats")}))], Saved(NEW)),
        (STORED, [error(500, "internal_error")], Saved(NEW)),
        (NULL_ENTRY, [FOUND_BY_OLD], AlreadySaved(OLD, OLD.memory_ref)),
        (NULL_ENTRY, [NOTHING], AlreadySaved(None, OLD.memory_ref)),
        (NULL_ENTRY, [error(500, "internal_error"), FOUND_BY_OLD], AlreadySaved(OLD, OLD.memory_ref)),
        (answer({"changed": False, "records": [RECORD]}), [NOTHING], AlreadySaved(NEW)),
        (answer({"changed": False, "records": []}), [NOTHING, FOUND], AlreadySaved(NEW)),
        (answer({"changed": True, "records": [RECORD], "later": "field"}), [NOTHING], Saved(NEW)),
    ],
)  # fmt: skip
def test_an_answered_write_is_what_the_server_says(remember: Reply, searches: list[Reply], outcome: Any, saver_of: Any, store: Any) -> None:
    server = store(remember, *searches)
    assert saver_of(server.base_url).save(binding(), "convention", TEXT) == outcome
    assert writes(server) == (0 if searches == [FOUND] else 1)


@pytest.mark.parametrize(
    ("remember", "reason"),
    [
        (error(401, "unauthorized"), "token"), (error(403, "forbidden"), "token"), (error(404, "scope_not_found"), "scope"),
        (error(413, "request_too_large"), "refused"), (error(422, "invalid_request"), "refused"), (error(422, "invalid_access_request"), "refused"),
        (error(422, "memory_write_rejected"), "refused"), (error(503, "server_overloaded"), "overloaded"),
        (error(503, "authentication_unavailable"), "overloaded"), (error(503, "runtime_not_ready"), "overloaded"),
    ],
)  # fmt: skip
def test_a_refused_write_is_not_saved(remember: Reply, reason: str, saver_of: Any, store: Any) -> None:
    server = store(remember)
    outcome = saver_of(server.base_url).save(binding(), "convention", TEXT)
    assert isinstance(outcome, NotSaved)
    assert outcome.reason == reason
    assert writes(server) == 1


@pytest.mark.parametrize(("search", "reason"), [(error(401, "unauthorized"), "token"), (error(404, "scope_not_found"), "scope")])
def test_a_refused_look_up_ends_the_save(search: Reply, reason: str, saver_of: Any, store: Any) -> None:
    server = store(STORED, search)
    outcome = saver_of(server.base_url).save(binding(), "convention", TEXT)
    assert isinstance(outcome, NotSaved)
    assert (outcome.reason, writes(server)) == (reason, 0)


def limit(name: str) -> float:
    """Return a limit for a step: short where it passes in any case, ample where it must not."""
    return 0.5 if name in UNENDING else 5.0


LOST: dict[str, Reply | Script] = {
    **{name: SCRIPTS[name] for name in ("silent", "dripped headers", "dripped body", "garbage", "cut", "reset", "closed after request", "64 MiB body")},
    **{name: REPLIES[name] for name in ("bad UTF-8", "array", "500", "502")},
    "503 of a locked database": error(503, "access_unavailable"),
    "503 of a proxy": Reply(503, b"<html>"),
    "201": Reply(201, STORED.body),
    "204": Reply(204),
    "no record": answer(remembered()),
    "no citation": answer(remembered(RECORD | {"artifact": None})),
    "wrong citation": answer(remembered(RECORD | {"artifact": CITATION | {"revision": "1"}})),
    "another shape": answer({"status": "ok"}),
    "not an object": answer(None),
}


@pytest.mark.parametrize("name", LOST)
def test_a_write_whose_end_is_lost_is_unknown(name: str, saver_of: Any, store: Any) -> None:
    server = store(LOST[name])
    assert isinstance(saver_of(server.base_url, limit(name)).save(binding(), "convention", TEXT), Unknown)
    assert writes(server) == 1


@pytest.mark.parametrize("name", LOST)
def test_a_write_whose_end_is_lost_but_which_is_found_is_saved(name: str, saver_of: Any, store: Any) -> None:
    server = store(LOST[name], NOTHING, FOUND)
    assert saver_of(server.base_url, limit(name)).save(binding(), "convention", TEXT) == Saved(NEW, by_read_back=True)
    assert writes(server) == 1


def test_before_1_3_a_text_that_was_there_proves_nothing_of_a_lost_write(saver_of: Any, store: Any) -> None:
    """Its kind is not told: what was there may be another memory."""
    server = store(lambda request, peer: None, FOUND_BY_OLD)
    assert isinstance(saver_of(server.base_url).save(binding(), "convention", TEXT), Unknown)
    assert writes(server) == 1


@pytest.mark.parametrize("name", FAULTS)
def test_under_every_fault_a_save_is_honest_and_ends(name: str, saver_of: Any) -> None:
    with FAULTS[name]() as base_url:
        started = time.monotonic()
        outcome = saver_of(base_url, 0.4).save(binding(), "convention", TEXT)
        assert time.monotonic() - started < 20  # three steps of a limit each; what drips or is endless would take minutes
    assert isinstance(outcome, NotSaved | Unknown)


@pytest.mark.parametrize("name", ["refused", "black-holed connect", "hung name look-up", "stalled TLS handshake"])
def test_without_a_connection_nothing_is_saved(name: str, saver_of: Any) -> None:
    with FAULTS[name]() as base_url:
        outcome = saver_of(base_url, 0.3).save(binding(), "convention", TEXT)
    assert isinstance(outcome, NotSaved)
    assert outcome.reason == "unreachable"


def test_a_step_ends_after_nine_seconds_whatever_the_settings_allow(saver_of: Any, store: Any) -> None:
    server = store(lambda request, peer: peer.hang())
    started = time.monotonic()
    assert isinstance(saver_of(server.base_url, 600.0).save(binding(), "convention", TEXT), Unknown)
    assert 8.9 < time.monotonic() - started < 20


def test_identical_saves_at_once_write_once_and_share_the_outcome(saver_of: Any, store: Any) -> None:
    proceed = threading.Event()

    def hold(request: Request, peer: Peer) -> Reply:
        proceed.wait(5)
        return STORED

    server = store(hold)
    saver = saver_of(server.base_url, 5.0)
    outcomes: list[Any] = []
    threads = [threading.Thread(target=lambda: outcomes.append(saver.save(binding(), "convention", TEXT))) for _ in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    proceed.set()
    for thread in threads:
        thread.join(10)
    assert sorted(map(repr, outcomes)) == sorted(map(repr, [Saved(NEW)] + [AlreadySaved(NEW)] * 4))
    assert writes(server) == 1


def test_a_save_goes_on_by_itself_when_the_identical_one_it_waited_for_was_cancelled(saver_of: Any, powercontext_bytes: Callable[[Script], Any]) -> None:
    asked, cancelled = threading.Event(), threading.Event()

    def script(request: Request, peer: Peer) -> Reply:
        if request.path.endswith("remember"):
            return STORED
        asked.set()
        cancelled.wait(20)
        return NOTHING

    server = powercontext_bytes(script)
    saver = saver_of(server.base_url, 20.0)
    deadlines = [Deadline.after(20), Deadline.after(20)]
    outcomes: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda number=number: outcomes.update({number: saver.save(binding(), "convention", TEXT, deadline=deadlines[number])})) for number in (0, 1)]
    threads[0].start()
    assert asked.wait(20)
    threads[1].start()
    time.sleep(0.2)
    deadlines[0].cancel()
    cancelled.set()
    for thread in threads:
        thread.join(20)
    assert outcomes[0].reason == "shutdown"
    assert outcomes[1] == Saved(NEW)
    assert writes(server) == 1


def test_a_save_waits_for_an_identical_one_no_longer_than_its_own_limit(saver_of: Any, store: Any) -> None:
    writing = threading.Event()

    def hang(request: Request, peer: Peer) -> None:
        writing.set()
        peer.hang()

    server = store(hang)
    saver = saver_of(server.base_url, 3.0)
    thread = threading.Thread(target=saver.save, args=(binding(), "convention", TEXT))
    thread.start()
    assert writing.wait(20)
    assert isinstance(saver.save(binding(), "convention", TEXT, deadline=Deadline.after(0.2)), Unknown)
    thread.join(20)
    assert writes(server) == 1


def test_a_forked_child_does_not_wait_for_its_parents_save(saver_of: Any, store: Any) -> None:
    writing = threading.Event()

    def late(_request: Request, _peer: Peer) -> Reply:
        writing.set()
        time.sleep(0.5)
        return STORED

    saver = saver_of(store(late).base_url, seconds=5.0)
    thread = threading.Thread(target=saver.save, args=(binding(), "convention", TEXT))
    thread.start()
    assert writing.wait(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that hangs
        os._exit(0 if saver.save(binding(), "convention", TEXT) == Saved(NEW) else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
