"""A connection the server closed, a name that is slow to look up, an address that is dead: paid once, or not at all."""

from __future__ import annotations

import socket
import time
from collections import Counter

import httpcore
import pytest
from powercontext_support import OWNER, READY, BuildManager, Configure, StartBytes, binding
from powercontext_support.byte_server import Peer, Request
from powercontext_support.replies import Reply, answer

from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.outcomes import Saved
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver
from deerflow.agents.memory.backends.powercontext.transport.names import Names

pytest_plugins = ("powercontext_support.fixtures",)


class ClosesAtReuse:
    """Answers the first request of a connection, and closes it at the second, as servers and proxies may."""

    def __init__(self, first: bytes = READY.raw()) -> None:
        self.first = first
        self.requests: Counter[int] = Counter()
        self.paths: list[str] = []

    def __call__(self, request: Request, peer: Peer) -> Reply | bytes | None:
        connection = id(peer.connection)
        self.requests[connection] += 1
        self.paths.append(request.path)
        return self.first if self.requests[connection] == 1 else None


@pytest.mark.parametrize("recall_query", ["full", "focused"])
def test_no_recall_is_lost_on_a_connection_that_closes_at_reuse(recall_query: str, powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(ClosesAtReuse())
    manager = powercontext_manager(server.base_url, recall_query=recall_query)
    assert [manager.get_context(OWNER, query="refund") for _ in range(30)] == ["Refund amounts are integer cents."] * 30


def test_a_question_is_asked_again_once_and_not_for_ever(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    answers = iter([READY])
    server = powercontext_bytes(lambda request, peer: next(answers, None))
    manager = powercontext_manager(server.base_url, recall_query="full")
    assert manager.get_context(OWNER, query="refund") != ""
    assert manager.get_context(OWNER, query="refund") == ""
    assert len(server.requests) == 3


def test_a_question_that_met_a_new_connection_is_not_asked_again(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(lambda request, peer: None)
    assert powercontext_manager(server.base_url, recall_query="full").get_context(OWNER, query="refund") == ""
    assert len(server.requests) == 1


def test_a_reply_that_broke_off_is_not_asked_for_again(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    def break_off(request: Request, peer: Peer) -> Reply | bytes | None:
        if len(server.requests) == 1:
            return READY.raw()
        peer.send(READY.raw()[:1])
        return None

    server = powercontext_bytes(break_off)
    manager = powercontext_manager(server.base_url, recall_query="full")
    assert [bool(manager.get_context(OWNER, query="refund")) for _ in range(2)] == [True, False]
    assert len(server.requests) == 2


def test_a_write_is_sent_once_whatever_closes(powercontext_environment: Configure, powercontext_bytes: StartBytes) -> None:
    record = {"artifact": {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}, "kind": "fact", "text": "The depot opens at six.", "state": "active"}

    def script(request: Request, peer: Peer) -> Reply | bytes | None:
        if request.path == "/v1/memory/remember":
            return None
        written = any(earlier.path == "/v1/memory/remember" for earlier in server.requests)
        hits = [{"memory": record | {"state_version": 0}, "score": 0.1, "matched_by": ["text"]}] if written else []
        return answer({"hits": hits})

    server = powercontext_bytes(script)
    powercontext_environment(base_url=server.base_url)
    outcome = Saver(load_settings()).save(binding(), "fact", "The depot opens at six.")
    assert isinstance(outcome, Saved)
    assert outcome.by_read_back is True
    assert [request.path for request in server.requests].count("/v1/memory/remember") == 1


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every name take 1.2 s to look up, and lead to a dead address and then to this machine; return what was looked up."""
    looked_up: list[str] = []
    original = socket.getaddrinfo

    def look_up(host: str, port: int, *arguments: object, **options: object) -> list[object]:
        if host.startswith("127."):
            return list(original(host, port, type=socket.SOCK_STREAM))
        looked_up.append(host)
        time.sleep(1.2)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.99", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return looked_up


def test_a_slow_look_up_is_paid_once(slow_names: list[str], powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(lambda request, peer: READY)
    manager = powercontext_manager(server.base_url.replace("127.0.0.1", "localhost"), recall_query="full", recall_timeout_seconds="1.0")
    assert manager.get_context(OWNER, query="refund") == ""  # too slow for this one ...
    deadline = time.monotonic() + 30
    while manager.get_context(OWNER, query="refund") == "":  # ... but what it found is kept
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert slow_names == ["localhost"]


def test_an_old_look_up_serves_while_a_new_one_is_under_way(slow_names: list[str]) -> None:
    names = Names(kept_seconds=0.0)
    with pytest.raises(httpcore.ConnectTimeout):
        names.addresses_of("localhost", 80, 0.1)
    assert names.addresses_of("localhost", 80, 20) == ["127.0.0.99", "127.0.0.1"]
    names.answered("localhost", 80, "127.0.0.1")
    assert names.addresses_of("localhost", 80, 0.1) == ["127.0.0.1", "127.0.0.99"]
    time.sleep(2)
    assert names.addresses_of("localhost", 80, 0.1) == ["127.0.0.1", "127.0.0.99"]
    assert len(slow_names) == 3


def closes_each(request: Request, peer: Peer) -> None:
    """Answer, and close the connection."""
    peer.send(READY.raw())


def test_the_address_that_answered_is_tried_first(slow_names: list[str], powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    with socket.socket() as dead:  # accepts nothing, and its queue is full: a connect hangs
        server = powercontext_bytes(closes_each)
        dead.bind(("127.0.0.99", server.port))
        dead.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.99", server.port))
        manager = powercontext_manager(server.base_url.replace("127.0.0.1", "localhost"), recall_query="full", recall_timeout_seconds="4")
        started = time.monotonic()
        assert manager.get_context(OWNER, query="refund") != ""
        assert time.monotonic() - started > 2  # the look-up, and half of the rest for the dead address
        started = time.monotonic()
        for _ in range(4):
            assert manager.get_context(OWNER, query="refund") != ""
        assert time.monotonic() - started < 4  # half of the limit each, if the dead address were tried
        for filler in fillers:
            filler.close()
