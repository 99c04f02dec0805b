"""The circuit breaker before recall.

While the server is stuck, one caller now and then waits for it, and finds out; nobody else.

A recall that times out holds a thread of the host's small pool for the whole limit: forty of them held six threads for
14 s. So after one, the next ones are refused at once, for everybody, but for one probe at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ..api.client import PowerContextClient
from ..errors import PowerContextCancelledError, PowerContextError, PowerContextStatusError, PowerContextTimeoutError
from ..process import PerClient
from ..transport.forking import in_forked_children

FIRST_INTERVAL_SECONDS: Final = 1.0
LAST_INTERVAL_SECONDS: Final = 30.0
"""Probes begin at most this far apart, so recall is back at the latest this long after the server is."""

SLOW_SECONDS: Final = 1.0
"""A failure that took as long is as bad as a time-out, for example a proxy's late 504."""

# A recall ends within 4 s. A probe that has not reported by then never will.
_PROBE_SECONDS: Final = 5.0


class CircuitBreaker:
    """Tells whether a recall may ask the server. Safe for any number of threads, also in forked children.

    Args:
        clock: Seconds that only go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._tripped = False
        self._interval = FIRST_INTERVAL_SECONDS
        self._next_probe = self._last_good = clock()
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()

    def attempt(self) -> Attempt:
        """Return the context for one recall; what leaves it, result or exception, is what the breaker learns.

        Raises:
            PowerContextTimeoutError: The server is stuck, and it is not time for a probe.
        """
        if not self._tripped:  # read without the lock: this is every healthy recall's path
            return Attempt(self, is_probe=False)
        with self._lock:
            now = self.clock()
            if not self._tripped:
                return Attempt(self, is_probe=False)
            if now >= self._next_probe:
                self._next_probe = now + _PROBE_SECONDS
                return Attempt(self, is_probe=True)
        raise PowerContextTimeoutError(
            "not asked, because it did not answer in time a moment ago",
            operation="prepare_context",
            may_have_been_sent=False,
        )

    def answered(self) -> None:
        """Learn that the server answers."""
        now = self.clock()
        if not self._tripped:
            self._last_good = now
            return
        with self._lock:
            self._tripped = False
            self._interval = FIRST_INTERVAL_SECONDS
            self._last_good = now

    def refused(self) -> None:
        """Learn that asking costs no time, though it does not succeed.

        If the server is stuck again, the intervals go on growing.
        """
        with self._lock:
            self._tripped = False

    def waited(self, began: float, *, is_probe: bool) -> None:
        """Learn that a recall that ``began`` then waited in vain. What began before the last good answer is no news."""
        with self._lock:
            if began < self._last_good or (self._tripped and not is_probe):
                return
            self._tripped = True
            self._next_probe = max(began + self._interval, self.clock() + FIRST_INTERVAL_SECONDS)
            self._interval = min(2 * self._interval, LAST_INTERVAL_SECONDS)

    def broke_off(self) -> None:
        """Learn that a probe ended without news, so that another may follow."""
        with self._lock:
            self._next_probe = min(self._next_probe, self.clock())


class Attempt:
    """One recall that the breaker let through."""

    __slots__ = ("_began", "_breaker", "_is_probe")

    def __init__(self, breaker: CircuitBreaker, *, is_probe: bool) -> None:
        self._breaker = breaker
        self._is_probe = is_probe
        self._began = breaker.clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        breaker = self._breaker
        if error is None or _is_an_answer(error):
            breaker.answered()
        elif not isinstance(error, PowerContextError) or isinstance(error, PowerContextCancelledError):
            if self._is_probe:
                breaker.broke_off()
        elif isinstance(error, PowerContextTimeoutError) or breaker.clock() - self._began >= SLOW_SECONDS:
            breaker.waited(self._began, is_probe=self._is_probe)
        elif self._is_probe:
            breaker.refused()


def _is_an_answer(error: BaseException) -> bool:
    """Tell whether PowerContext itself refused a request, which a stuck server does not."""
    return isinstance(error, PowerContextStatusError) and error.code is not None and error.status_code < 500


_breakers = PerClient(CircuitBreaker)


def circuit_breaker_of(client: PowerContextClient) -> CircuitBreaker:
    """Return the process's circuit breaker for ``client``, which all people share."""
    breaker: CircuitBreaker = _breakers.of(client)
    return breaker
