"""A thread of our own that is there while there is work: never the host's pool, never its event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from ..transport.forking import in_forked_children

LINGER_SECONDS: Final = 10.0
"""How long the thread stays when it has nothing to do."""


class Worker:
    """Calls ``step`` on a daemon thread, which ``wake`` starts, until there is nothing to do for a while.

    ``step`` returns the seconds after which it wants to be called again, or ``None`` if there is nothing to do. It
    raises nothing. In a forked child there is no thread until ``wake`` is called there.
    """

    def __init__(self, name: str, step: Callable[[], float | None]) -> None:
        self._name = name
        self._step = step
        self._linger_seconds = LINGER_SECONDS
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._calls = 0
        self._thread: threading.Thread | None = None

    def wake(self) -> bool:
        """Have ``step`` called soon.

        Return whether it will be: when the process is ending, no thread starts any more.
        """
        with self._changed:
            self._calls += 1
            self._changed.notify_all()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
        return True

    def close(self) -> None:
        """Let the thread end when ``step`` finds nothing to do. What wakes it later is still done. Idempotent."""
        with self._changed:
            self._linger_seconds = 0.0
            self._calls += 1
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                calls = self._calls
            wait = self._step()
            with self._changed:
                until = time.monotonic() + (self._linger_seconds if wait is None else wait)
                while self._calls == calls and time.monotonic() < until:
                    self._changed.wait(until - time.monotonic())
                if self._calls == calls and wait is None:
                    self._thread = None
                    return
