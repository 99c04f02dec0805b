"""How many of DeerFlow's threads may wait for the memory server at a time.

DeerFlow calls its memory tools and its memory page on the pool that everybody's blocking work shares: cores + 4
threads. Two of them are ours at most; whoever comes then waits a moment and is told that memory is busy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import PowerContextBusyError
from ..transport.forking import in_forked_children

MAX_WAITING: Final = 2
PATIENCE_SECONDS: Final = 0.25


class Gate:
    """Lets ``MAX_WAITING`` calls in at a time.

    Safe for any number of threads; a forked child starts with none inside.
    """

    def __init__(self) -> None:
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._free = threading.BoundedSemaphore(MAX_WAITING)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Hold a place.

        Raises:
            PowerContextBusyError: None came free within ``PATIENCE_SECONDS``; nothing was sent.
        """
        free = self._free
        if not free.acquire(timeout=PATIENCE_SECONDS):
            raise PowerContextBusyError("too many calls wait for the memory server")
        try:
            yield
        finally:
            free.release()
