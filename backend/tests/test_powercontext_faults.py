"""Whatever the server or the network does, a recall ends within its limit, without memory and without an exception."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from powercontext_support import OWNER, READY, BuildManager, Configure, StartBytes, StartHTTP, binding
from powercontext_support.byte_server import Peer, Request, always
from powercontext_support.faults import FAULTS, hung_name_lookup
from powercontext_support.replies import answer, prepared

from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextTimeoutError
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings

pytest_plugins = ("powercontext_support.fixtures",)


@pytest.mark.parametrize("name", FAULTS)
def test_a_recall_ends_within_its_limit(name: str, powercontext_manager: BuildManager) -> None:
    with FAULTS[name]() as base_url:
        manager = powercontext_manager(base_url, recall_timeout_seconds="1.0")
        started = time.monotonic()
        assert manager.get_context(OWNER, query="refund") == ""
        assert time.monotonic() - started < 5  # what drips or never ends would take minutes; `make deadlines` tells milliseconds


def test_a_request_the_server_does_not_read_ends_within_the_limit(powercontext_manager: BuildManager) -> None:
    with FAULTS["black-holed connect"]() as base_url:
        manager = powercontext_manager(base_url, recall_timeout_seconds="0.3")
        started = time.monotonic()
        assert manager.get_context(OWNER, query="测" * 8192) == ""
        assert time.monotonic() - started < 5


def test_callers_that_wait_for_a_connection_end_within_the_limit(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    open_now: set[int] = set()
    most_open: list[int] = []

    def silent(request: Request, peer: Peer) -> None:
        open_now.add(id(peer))
        most_open.append(len(open_now))
        peer.connection.recv(1)  # until the client gives up
        open_now.discard(id(peer))

    server = powercontext_bytes(silent)
    manager = powercontext_manager(server.base_url, recall_timeout_seconds="1.0")
    durations: list[float] = []

    def recall() -> None:
        started = time.monotonic()
        assert manager.get_context(OWNER, query="refund") == ""
        durations.append(time.monotonic() - started)

    _in_threads(200, recall)
    assert len(durations) == 200
    assert max(durations) < 6  # one after the other, 16 at once, they would take 12 s
    assert max(most_open) <= 24  # 16, and those whose end this server has not noticed yet


def test_hung_name_lookups_share_one_thread(powercontext_environment: Configure) -> None:
    def ask() -> None:
        with pytest.raises(PowerContextTimeoutError):  # past the circuit breaker, which refuses after the first
            shared_client(load_settings()).prepare_context(binding(), "refund", deadline=Deadline.after(0.2))

    with hung_name_lookup() as base_url:
        powercontext_environment(base_url=base_url)
        before = set(threading.enumerate())
        _in_threads(4, ask)
        ask()
        new = set(threading.enumerate()) - before
        assert [thread.name for thread in new] == ["powercontext-lookup"]


def test_many_threads_recall_without_a_failure(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(always(READY))
    manager = powercontext_manager(server.base_url)
    contexts: list[str] = []
    _in_threads(64, lambda: contexts.extend(manager.get_context(OWNER, query="refund") for _ in range(8)))
    assert contexts == ["Refund amounts are integer cents."] * 512
    assert server.connections <= 64  # of 1,024 requests; 16, if none of them idles for seconds because the machine is busy


def test_the_largest_legitimate_reply_is_accepted(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    text = "\x01" * 32768
    server = powercontext_http(answer(prepared(text)))
    assert powercontext_manager(server.base_url, max_bytes="32768").get_context(OWNER, query="refund") == text


def test_new_fields_of_a_later_server_are_ignored(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer(prepared("text", reason=None, citations=[{"id": 1}])))
    assert powercontext_manager(server.base_url).get_context(OWNER, query="refund") == "text"


def _in_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
