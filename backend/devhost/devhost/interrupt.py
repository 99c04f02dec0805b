"""How the demo ends on Ctrl-C and SIGTERM: quietly, and with everything cleaned up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupt:
    """Ctrl-C and SIGTERM: they raise ``KeyboardInterrupt``, once, but not while an event loop runs.

    ``asyncio.Runner`` would cancel the call under way. One that ends just then has nothing to cancel, and a tool answers
    a cancelled call: either way the story would go on. And a loop that an exception leaves at any moment may not close.
    """

    def __init__(self) -> None:
        self._held = self._noted = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second one would disturb the cleaning up
        self._noted = True
        if not self._held:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold an interrupt back until the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._noted:
            raise KeyboardInterrupt


class Calls:
    """The host's event loop. An interrupt comes after the call under way, which takes seconds at most."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._runner = asyncio.Runner()

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._interrupt.held():
            self._runner.close()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Return what ``call`` returns."""
        with self._interrupt.held():
            return self._runner.run(call)
