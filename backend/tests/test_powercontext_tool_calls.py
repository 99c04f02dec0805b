"""The tools' own threads: who waits for whom, what is never sent, and what a cancel, a closed loop, a fork and an exit do."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, BuildManager, StartBytes
from powercontext_support.byte_server import Peer, Request, Script
from powercontext_support.replies import Reply, answer, error

from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextBusyError, PowerContextCancelledError
from deerflow.agents.memory.backends.powercontext.tools.tool_calls import run

pytest_plugins = ("powercontext_support.fixtures",)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return the event the stuck calls of a test wait for; set at the end."""
    event = threading.Event()
    yield event
    event.set()


def call(work: Callable[[], Any], seconds: float = 28.0, abandoned: Callable[[Any], None] = lambda result: None) -> asyncio.Task[Any]:
    return asyncio.create_task(run(work, deadline=Deadline.after(seconds), abandoned=abandoned))


async def stuck_calls(release: threading.Event, count: int = 8) -> list[asyncio.Task[Any]]:
    """Begin calls that wait for ``release``, and return them when each has a thread."""
    started = threading.Semaphore(0)

    def wait() -> None:
        started.release()
        release.wait()

    calls = [call(wait) for _ in range(count)]
    for _ in range(count):
        while not started.acquire(blocking=False):
            await asyncio.sleep(0.01)
    return calls


def test_what_the_work_returns_and_raises_comes_back() -> None:
    async def both() -> list[Any]:
        return list(await asyncio.gather(call(lambda: 7), call(lambda: [][0]), return_exceptions=True))

    result, error = asyncio.run(both())
    assert result == 7
    assert isinstance(error, IndexError)


def test_the_work_sees_the_context_of_its_caller() -> None:
    trace = contextvars.ContextVar("trace", default="none")

    async def traced() -> Any:
        trace.set("run 5")
        return await call(trace.get)

    assert asyncio.run(traced()) == "run 5"


def test_stuck_calls_leave_the_hosts_pool_alone(release: threading.Event) -> None:
    async def stranger() -> tuple[str, list[bool]]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(6))
        calls = await stuck_calls(release)
        answer = await asyncio.to_thread(lambda: "served")
        done = [task.done() for task in calls]
        release.set()
        await asyncio.gather(*calls)
        return answer, done

    assert asyncio.run(stranger()) == ("served", [False] * 8)


def test_at_most_eight_calls_run_at_a_time_and_none_is_lost(release: threading.Event) -> None:
    begun: list[int] = []

    async def many() -> None:
        calls = await stuck_calls(release)
        later = [call(lambda number=number: begun.append(number)) for number in range(40)]  # type: ignore[misc]
        await asyncio.sleep(0.2)
        assert begun == []
        release.set()
        await asyncio.gather(*calls, *later)

    asyncio.run(many())
    assert sorted(begun) == list(range(40))


def test_a_call_that_gets_no_thread_in_time_is_busy_and_never_begins(release: threading.Event) -> None:
    begun: list[str] = []

    async def ninth() -> None:
        calls = await stuck_calls(release)
        with pytest.raises(PowerContextBusyError) as caught:
            await call(lambda: begun.append("ninth"), seconds=0.4)
        assert caught.value.may_have_been_sent is False
        release.set()
        await asyncio.gather(*calls)
        await call(lambda: begun.append("tenth"))

    asyncio.run(ninth())
    assert begun == ["tenth"]


def test_a_call_that_is_cancelled_while_it_waits_never_begins(release: threading.Event) -> None:
    begun: list[str] = []

    async def cancelled() -> None:
        calls = await stuck_calls(release)
        waiting = call(lambda: begun.append("ninth"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await asyncio.gather(*calls)
        await call(lambda: None)

    asyncio.run(cancelled())
    assert begun == []


def test_a_cancelled_call_returns_at_once_cancels_its_deadline_and_logs_its_result_once(release: threading.Event) -> None:
    told: list[Any] = []
    deadline = Deadline.after(28)
    ended = threading.Event()

    def work() -> bool:
        release.wait()
        return deadline.cancelled

    def abandoned(result: bool) -> None:
        told.append(result)
        ended.set()

    async def cancelled() -> None:
        task = asyncio.create_task(run(work, deadline=deadline, abandoned=abandoned))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == []
        release.set()

    asyncio.run(cancelled())
    assert ended.wait(10)
    assert told == [True]


def test_the_result_of_a_call_whose_loop_is_closed_is_logged_and_nothing_is_raised(release: threading.Event) -> None:
    told: list[Any] = []
    ended = threading.Event()

    def abandoned(result: Any) -> None:
        told.append(result)
        ended.set()

    loop = asyncio.new_event_loop()
    task = loop.create_task(run(lambda: release.wait(30), deadline=Deadline.after(28), abandoned=abandoned))
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    release.set()
    assert ended.wait(10)
    assert told == [True]
    assert not task.done()
    kept = weakref.ref(task)
    del task
    while kept() is not None:  # asyncio logs that it is destroyed: here, and not while another test looks at the log
        gc.collect()
        time.sleep(0.01)


def test_a_closed_manager_sends_nothing_of_the_calls_that_wait(release: threading.Event, powercontext_manager: BuildManager) -> None:
    begun: list[str] = []

    async def closed() -> None:
        calls = await stuck_calls(release)
        waiting = call(lambda: begun.append("ninth"))
        await asyncio.sleep(0.05)
        powercontext_manager("http://127.0.0.1:9").close()
        with pytest.raises(PowerContextCancelledError):
            await waiting
        release.set()
        await asyncio.gather(*calls)

    asyncio.run(closed())
    assert begun == []


def test_a_forked_child_has_threads_of_its_own(release: threading.Event) -> None:
    async def fork() -> int:
        calls = await stuck_calls(release)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of the parent's threads
            child = await asyncio.to_thread(fork_and_call)
        release.set()
        await asyncio.gather(*calls)
        return child

    def fork_and_call() -> int:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that hangs
            os._exit(asyncio.run(in_child()))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    async def in_child() -> int:
        return int(await call(lambda: 5))

    assert asyncio.run(fork()) == 5


EXITING = """
import asyncio, logging, sys, time
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver
from deerflow.agents.memory.backends.powercontext.tools.tool_calls import run

async def main(seconds):
    settings = load_settings()
    [binding] = settings.people.bindings
    deadline = Deadline.after(28)
    work = lambda: Saver(settings).save(binding, "fact", "Refunds are integer cents.", deadline=deadline)
    save = asyncio.create_task(run(work, deadline=deadline, abandoned=lambda outcome: logging.warning("%s", type(outcome).__name__)))
    await asyncio.sleep(seconds)
    print("exits", flush=True)

asyncio.run(main(float(sys.argv[1])))
"""


def exit_of(base_url: str, seconds: float = 1.0) -> tuple[list[str], float]:
    """Run a process that begins a save and ends after ``seconds``; return its lines, and how long the exit took."""
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": ""}
    settings = {"BASE_URL": base_url, "OWNER_USER_ID": OWNER, "SCOPE_ID": SCOPE, "TOKEN": TOKEN, "REMEMBER_TIMEOUT_SECONDS": "9"}
    environment |= {f"POWERCONTEXT_DEERFLOW_{name}": value for name, value in settings.items()}
    with subprocess.Popen([sys.executable, "-c", EXITING, str(seconds)], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        exits = 0.0
        for line in process.stdout:
            lines.append(line.strip())
            exits = exits or (time.monotonic() if line.strip() == "exits" else 0.0)
        assert process.wait(60) == 0
        return lines, time.monotonic() - exits


def hang_at(path: str) -> Script:
    def script(request: Request, peer: Peer) -> Reply:
        if request.path.endswith(path):
            peer.hang()
        return answer({"hits": []})

    return script


def test_an_exit_during_a_stuck_write_waits_for_two_seconds_at_most_and_says_that_the_save_is_unknown(powercontext_bytes: StartBytes) -> None:
    lines, seconds = exit_of(powercontext_bytes(hang_at("remember")).base_url)
    assert len(lines) == 2
    assert lines[0] == "exits"
    assert lines[1].startswith("The process ended")
    assert lines[1].endswith("whether it is stored is unknown.")
    assert seconds < 6  # 9 s is the step's own limit


def test_an_exit_during_a_stuck_look_up_writes_nothing_and_claims_nothing(powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(hang_at("search"))
    lines, seconds = exit_of(server.base_url)
    assert lines == ["exits"]
    assert seconds < 6
    assert [request.path for request in server.requests] == ["/v1/memory/search"]


def test_an_exit_with_idle_threads_waits_for_none(powercontext_bytes: StartBytes) -> None:
    refused = error(401, "unauthorized")
    lines, seconds = exit_of(powercontext_bytes(lambda request, peer: refused).base_url)
    assert lines == ["exits"]
    assert seconds < 6  # an idle thread stays for ten
