"""The tools' own few threads, so that a memory server that hangs holds up other calls of our tools and nothing else.

DeerFlow does everybody's blocking work on one small pool, the event loop's default executor: eight saves to a silent
server held another user's run for 15 s there. These threads are daemons, made when they are needed, gone when they
are not, and never joined: an exit waits ``EXIT_SECONDS`` at most.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ..deadline import Deadline
from ..errors import PowerContextBusyError, PowerContextCancelledError, PowerContextError
from ..transport.forking import in_forked_children

logger = logging.getLogger(__name__)

CALL_SECONDS: Final = 28.0
"""What a tool's whole call may take, counted from the call; DeerFlow gives up at 30."""

MAX_THREADS: Final = 8
"""A process's calls of our tools that run at a time: half of the client's connections, the rest stays with recall."""

IDLE_SECONDS: Final = 10.0
"""A thread with nothing to do ends after this."""

EXIT_SECONDS: Final = 1.5
"""What an exit grants the steps under way."""

# A call that waited longer than this for a thread would hardly end in the rest, and a write cut short is one nobody
# knows the end of.
_WAITING_SHARE: Final = 0.75


async def run(work: Callable[[], Any], *, deadline: Deadline, abandoned: Callable[[Any], None]) -> Any:
    """Run ``work`` on one of our threads and return what it returns. The event loop is never blocked.

    A cancelled caller gets its ``CancelledError`` at once; ``deadline`` is cancelled, so that ``work`` begins no
    further exchange.

    Args:
        work: Asks the server, within ``deadline``. Called once, or never.
        deadline: Of the whole call, from ``Deadline.after(CALL_SECONDS)`` at its beginning.
        abandoned: Told the result, on any thread, if nobody waits for it any more: the caller was cancelled, its loop
            is closed, or the process ends. It only logs.

    Raises:
        PowerContextBusyError: No thread came free in time; ``work`` was never called.
        PowerContextCancelledError: ``cancel_calls`` came first; ``work`` was never called.
    """
    import asyncio  # 12 ms, and whoever calls this has it

    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()
    call = _Call(work, deadline, abandoned, wake=lambda: loop.call_soon_threadsafe(_set, finished))
    _threads.add(call)
    try:
        await asyncio.wait([finished], timeout=deadline.left() * _WAITING_SHARE)
        if not finished.done() and _threads.withdraw(call):
            raise PowerContextBusyError("no thread of ours came free in time")
        await finished
    except asyncio.CancelledError:
        deadline.cancel()
        _threads.give_up(call)
        raise
    return call.outcome()


def cancel_calls() -> None:
    """Let no call begin a new step.

    Those that wait for a thread are never sent, those under way end with their step.
    """
    _threads.cancel()


def _set(finished: Any) -> None:
    if not finished.done():
        finished.set_result(None)


class _Call:
    """One call: what is to be done and until when, what came of it, and who is told. ``_Threads`` guards it."""

    def __init__(
        self,
        work: Callable[[], Any],
        deadline: Deadline,
        abandoned: Callable[[Any], None],
        *,
        wake: Callable[[], Any],
    ) -> None:
        self.deadline = deadline
        self.awaited = True
        self.finished = False
        self.started = time.monotonic()
        self._work = work
        self._wake = wake
        self._abandoned = abandoned
        self._context = contextvars.copy_context()  # the host's log lines carry the run's id
        self._results: list[Any] = []
        self._error: Exception | None = None

    def perform(self) -> None:
        try:
            self._results.append(self._context.run(self._work))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            self._error = error
        except BaseException:  # noqa: BLE001 - somebody stops this thread; the caller has to hear of it all the same
            self._error = PowerContextError("the call was interrupted")

    def refuse(self, error: Exception) -> None:
        self._error = error

    def outcome(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def tell(self) -> None:
        """Wake whoever waits for the outcome."""
        try:
            self._wake()
        except RuntimeError:  # its loop is closed
            self.log()

    def log(self) -> None:
        """Hand the result to the log, because nobody waits for it."""
        for result in self._results:
            self._abandoned(result)


class _Threads:
    """The process's threads and the calls that wait for one. A forked child starts with none of either."""

    def __init__(self) -> None:
        self._at_exit = False
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)
        self._queued: deque[_Call] = deque()
        self._running: set[_Call] = set()
        self._count = self._idle = 0

    def add(self, call: _Call) -> None:
        """Queue ``call``, and start a thread for it if there may be one more.

        ``PowerContextBusyError`` if there can be none.
        """
        with self._lock:
            self._queued.append(call)
            if len(self._queued) > self._idle and self._count < MAX_THREADS:
                try:
                    threading.Thread(target=self._serve, name="powercontext-tool", daemon=True).start()
                    self._count += 1
                except RuntimeError:  # no more threads, or the interpreter is shutting down
                    if not self._count:
                        self._queued.remove(call)
                        raise PowerContextBusyError("this process can start no thread") from None
            self._work.notify()
            if not self._at_exit:
                self._at_exit = True
                atexit.register(self._exit)

    def withdraw(self, call: _Call) -> bool:
        """Take ``call`` out of the queue. ``False`` if a thread has it."""
        with self._lock:
            waits = call in self._queued
            if waits:
                self._queued.remove(call)
            return waits

    def give_up(self, call: _Call) -> None:
        """Wait for ``call`` no more."""
        with self._lock:
            if call in self._queued:
                self._queued.remove(call)
            call.awaited = False
            finished = call.finished
        if finished:  # and the caller was cancelled before it could take the result
            call.log()

    def cancel(self) -> list[_Call]:
        with self._lock:
            queued, running = list(self._queued), list(self._running)
            self._queued.clear()
        for call in [*queued, *running]:
            call.deadline.cancel()
        for call in queued:
            call.refuse(PowerContextCancelledError("cancelled before it was sent"))
            call.tell()
        return running

    def _serve(self) -> None:
        while (call := self._take()) is not None:
            call.perform()
            with self._lock:
                call.finished = True
                awaited = call.awaited
            if awaited:
                call.tell()
            else:
                call.log()
            with self._lock:
                self._running.discard(call)
                self._ended.notify_all()
            del call  # an idle thread keeps nothing alive

    def _take(self) -> _Call | None:
        with self._lock:
            while not self._queued:
                self._idle += 1
                notified = self._work.wait(IDLE_SECONDS)
                self._idle -= 1
                if not notified and not self._queued:
                    self._count -= 1
                    return None
            call = self._queued.popleft()
            self._running.add(call)
            return call

    def _exit(self) -> None:
        """Let the steps under way end, but not for long, and say so of a write that does not."""
        cut_off = self.cancel()
        with self._lock:
            for call in cut_off:
                call.awaited = False  # its loop runs no more
            self._ended.wait_for(lambda: not self._running, EXIT_SECONDS)
            cut_off = [call for call in cut_off if call in self._running and call.deadline.wrote]
        for call in cut_off:
            logger.warning(
                "The process ended %.1f s into a write to PowerContext; whether it is stored is unknown.",
                time.monotonic() - call.started,
            )


_threads = _Threads()
