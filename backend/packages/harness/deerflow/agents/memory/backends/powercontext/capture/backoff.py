"""When something that failed is tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Hashable
from typing import Final

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 300.0
JITTER: Final = 1.5


class Backoff:
    """Waits that double from 1 s to 5 min with every failure in a row, each up to half as long again at random."""

    def __init__(self) -> None:
        self._failures: dict[Hashable, int] = {}
        self._due: dict[Hashable, float] = {}

    def failed(self, what: Hashable) -> None:
        """Note that ``what`` failed."""
        failures = self._failures.get(what, 0)
        self._failures[what] = failures + 1
        shortest = min(LONGEST_SECONDS / JITTER, FIRST_SECONDS * 2 ** min(failures, 20))
        self._due[what] = time.monotonic() + random.uniform(shortest, shortest * JITTER)  # noqa: S311 - no secret

    def succeeded(self, what: Hashable) -> None:
        """Note that ``what`` works."""
        self._failures.pop(what, None)
        self._due.pop(what, None)

    def wait_of(self, what: Hashable) -> float:
        """Return the seconds until ``what`` is to be tried again; 0.0 if it may be tried."""
        return max(0.0, self._due.get(what, 0.0) - time.monotonic())
