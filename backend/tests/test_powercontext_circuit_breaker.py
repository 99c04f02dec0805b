"""The circuit breaker before recall: while the server is stuck nobody waits for it but a probe, and recall is back soon after the server is."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from powercontext_support import OWNER, READY, BuildManager, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request
from powercontext_support.replies import error

from deerflow.agents.memory import manager as contract
from deerflow.agents.memory.backends.powercontext.errors import (
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)
from deerflow.agents.memory.backends.powercontext.recall.circuit_breaker import CircuitBreaker

pytest_plugins = ("powercontext_support.fixtures",)


class Stuck:
    """A server that answers nothing until ``healed``."""

    def __init__(self) -> None:
        self.healed = threading.Event()

    def __call__(self, request: Request, peer: Peer) -> bytes:
        if not self.healed.is_set():
            peer.hang()
        return READY.raw()


def prepared_by(server: Any) -> int:
    """Return how many recalls reached ``server``; each may have searched before."""
    return sum(request.path == "/v1/context/prepare" for request in server.requests)


def test_forty_recalls_of_a_stuck_server_hold_six_threads_no_longer_than_one(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(Stuck())
    manager = powercontext_manager(server.base_url)
    started = time.monotonic()
    with ThreadPoolExecutor(6) as pool:
        texts = list(pool.map(lambda number: manager.get_context(OWNER, query=f"refund {number}"), range(40)))
    assert texts == [""] * 40
    assert prepared_by(server) <= 8
    assert time.monotonic() - started < 8  # 14 s without it, about 2 on an idle machine


def test_recall_is_back_when_the_server_is(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    stuck = Stuck()
    manager = powercontext_manager(powercontext_bytes(stuck).base_url, recall_timeout_seconds="0.3")
    assert manager.get_context(OWNER, query="refund") == ""
    stuck.healed.set()
    assert manager.get_context(OWNER, query="refund") == ""  # not asked
    until = time.monotonic() + 30
    while manager.get_context(OWNER, query="refund") == "":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert manager.get_context(OWNER, query="refund") == "Refund amounts are integer cents."


def test_a_stuck_server_is_probed_at_growing_intervals(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(Stuck())
    manager = powercontext_manager(server.base_url, recall_timeout_seconds="0.2")
    until = time.monotonic() + 6
    calls = 0
    while time.monotonic() < until:
        manager.get_context(OWNER, query="refund")
        calls += 1
        time.sleep(0.01)
    assert calls > 50
    assert 2 <= prepared_by(server) <= 4  # at 0.0, 1.2, 3.2 and 7.2 s


def test_with_fail_closed_a_recall_that_is_not_asked_is_the_error_of_a_timeout(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(Stuck())
    manager = powercontext_manager(server.base_url, {"failure_policy": {"read": "fail_closed"}}, recall_timeout_seconds="0.2")
    for _ in range(2):
        with pytest.raises(contract.MemoryManagerError, match="PowerContext recall failed: PowerContextTimeoutError"):
            manager.get_context(OWNER, query="refund")
    assert prepared_by(server) == 1


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (404, "scope_not_found"), (422, "invalid_request"), (503, "server_overloaded"), (502, "x")])
def test_a_quick_refusal_closes_nothing(status: int, code: str, powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(error(status, code))
    manager = powercontext_manager(server.base_url)
    for _ in range(5):
        assert manager.get_context(OWNER, query="refund") == ""
    assert prepared_by(server) == 5


def test_a_forked_child_has_a_guard_whose_lock_nobody_holds(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    manager = powercontext_manager(powercontext_bytes(Stuck()).base_url, recall_timeout_seconds="0.2")
    done = threading.Event()

    def recall_until_done() -> None:
        while not done.is_set():
            manager.get_context(OWNER, query="parent")

    threads = [threading.Thread(target=recall_until_done) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    signal.alarm(20)  # ends a child that hangs
                    os._exit(0 if manager.get_context(OWNER, query="child") == "" else 1)
                assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


# ---- the circuit breaker by itself, by a clock that the test turns


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


TIMEOUT = PowerContextTimeoutError("no complete reply within the limit", may_have_been_sent=True)


def recall(breaker: CircuitBreaker, clock: Clock, error: BaseException | None = TIMEOUT, seconds: float = 2.0) -> bool:
    """Let one recall end with ``error`` after ``seconds``. Return whether it was let through."""
    try:
        attempt = breaker.attempt()
    except PowerContextTimeoutError:
        return False
    with contextlib.suppress(BaseException), attempt:
        clock.now += seconds
        if error is not None:
            raise error
    return True


def test_the_intervals_between_probes_grow_from_one_second_to_thirty() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    begun = []
    while clock.now < 300:
        at = clock.now
        if recall(breaker, clock):
            begun.append(at - 100)
        else:
            clock.now += 0.5
    assert begun == [0, 3, 6, 10, 18, 34, 64, 94, 124, 154, 184]


def test_one_probe_is_let_through_at_a_time() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    recall(breaker, clock)
    clock.now += 1
    with breaker.attempt():
        for _ in range(4):
            clock.now += 1
            with pytest.raises(PowerContextTimeoutError):
                breaker.attempt()


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt(), PowerContextCancelledError("cancelled before it was sent")])
def test_a_probe_that_breaks_off_makes_room_for_the_next(error: BaseException) -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    recall(breaker, clock)
    clock.now += 1
    assert recall(breaker, clock, error)
    assert recall(breaker, clock, None)
    assert [recall(breaker, clock, None) for _ in range(3)] == [True] * 3


def test_a_probe_whose_thread_was_killed_makes_room_for_the_next_after_five_seconds() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    recall(breaker, clock)
    clock.now += 1
    breaker.attempt()  # and never entered, never left
    assert not recall(breaker, clock, None)
    clock.now += 5
    assert recall(breaker, clock, None)


def test_a_recall_that_began_before_the_last_good_answer_says_nothing_of_the_server() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    early = breaker.attempt()
    clock.now += 1.5
    recall(breaker, clock, None, seconds=0.1)
    clock.now += 0.4
    with pytest.raises(PowerContextTimeoutError), early:
        raise TIMEOUT
    assert recall(breaker, clock, None)


def test_many_recalls_that_time_out_together_count_as_one() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    attempts = [breaker.attempt() for _ in range(6)]
    clock.now += 2
    for attempt in attempts:
        with pytest.raises(PowerContextTimeoutError), attempt:
            raise TIMEOUT
    clock.now += 1
    assert recall(breaker, clock, None)


def slow(error: PowerContextError) -> Any:
    return pytest.param(error, 1.9, False, id=f"slow {type(error).__name__}")


def quick(error: PowerContextError) -> Any:
    return pytest.param(error, 0.2, True, id=f"quick {type(error).__name__}")


@pytest.mark.parametrize(
    ("error", "seconds", "stays_open"),
    [
        slow(PowerContextStatusError("the server answered 504", status_code=504, code=None)),
        slow(PowerContextStatusError("the server answered 503", status_code=503, code="server_overloaded")),
        slow(PowerContextResponseError("the connection broke before a complete reply")),
        slow(PowerContextConnectionError("nothing answers at the server's address")),
        quick(PowerContextStatusError("the server answered 504", status_code=504, code=None)),
        quick(PowerContextResponseError("the connection broke before a complete reply")),
        quick(PowerContextConnectionError("nothing answers at the server's address")),
        pytest.param(PowerContextStatusError("the server answered 401", status_code=401, code="unauthorized"), 1.9, True, id="a refused token, however late"),
    ],
)
def test_what_cost_time_in_vain_closes_and_what_did_not_does_not(error: PowerContextError, seconds: float, stays_open: bool) -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    recall(breaker, clock, error, seconds)
    assert recall(breaker, clock, None) is stays_open
