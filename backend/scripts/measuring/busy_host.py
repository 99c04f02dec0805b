"""A host of many for the audit: one event loop, a pool of six threads that strangers share, cancelled runs and forked children."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from forks import exit_code_of_a_child
from troubles import Troubles

from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextBusyError
from deerflow.agents.memory.backends.powercontext.tools.outcomes import NotSaved, Outcome
from deerflow.agents.memory.backends.powercontext.tools.tool_calls import CALL_SECONDS, run

POOL_THREADS = 6
SAVERS = 10
CANCELLED_SHARE = 0.08
REPEATED_SHARE = 0.2

Save = Callable[[str, Deadline], Outcome]


class BusyHost:
    """Runs saves as DeerFlow runs tools, beside strangers and recalls, and keeps what was claimed.

    Attributes:
        outcomes: What was claimed of each text, in order. A save that never began counts as not saved.
        cancelled: How many runs were cancelled.
        waits: How long each stranger waited for the pool, in seconds.
        recalls: How long each recall took.
        children: The exit codes of the forked children: 0 for one whose recall came back.
    """

    def __init__(self, save: Save, recall: Callable[[], object], troubles: Troubles) -> None:
        self.outcomes: dict[str, list[Outcome]] = {}
        self.cancelled = 0
        self.waits: list[float] = []
        self.recalls: list[float] = []
        self.children: Counter[int] = Counter()
        self._save = save
        self._recall = recall
        self._troubles = troubles
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def serve(self, saves: int) -> None:
        """Save ``saves`` times. About one in five repeats a text that was confirmed."""
        asyncio.run(self._serve(iter(range(saves))))

    async def _serve(self, numbers: Any) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL_THREADS))
        beside = [asyncio.create_task(work) for work in (self._strangers(), self._recalls(), self._recalls(), self._forks())]
        await asyncio.gather(*(self._saver(numbers) for _ in range(SAVERS)))
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)

    async def _saver(self, numbers: Any) -> None:
        for number in numbers:
            text = self._text(number)
            await asyncio.sleep(0.3)  # so that the saves spread over times with and without a server
            self._busy.add(text)
            await self._run(text)

    def _text(self, number: int) -> str:
        with self._lock:
            # not one whose cancelled save may still go on: its outcome is not told yet
            known = sorted(text for text, outcomes in self.outcomes.items() if not isinstance(outcomes[0], NotSaved) and hasattr(outcomes[0], "citation") and text not in self._busy)
        if known and self._troubles.chance() < REPEATED_SHARE:
            return known[int(self._troubles.chance() * len(known))]
        return f"Audit entry{number}: the depot of route{number} opens at six."

    async def _run(self, text: str) -> None:
        """Save as the tool does, and cancel some of the runs at a random moment."""
        deadline = Deadline.after(CALL_SECONDS)
        call = asyncio.create_task(run(lambda: self._save(text, deadline), deadline=deadline, abandoned=lambda outcome: self._note(text, outcome)))
        if self._troubles.chance() < CANCELLED_SHARE:
            await asyncio.wait([call], timeout=3 * self._troubles.chance() ** 2)
            self.cancelled += call.cancel()
        try:
            self._note(text, await call)
        except PowerContextBusyError as error:
            self._note(text, NotSaved("busy", error))
        except asyncio.CancelledError:
            pass  # what it came to is told by ``abandoned``; a call that never began leaves nothing

    def _note(self, text: str, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.setdefault(text, []).append(outcome)
        self._busy.discard(text)

    async def _strangers(self) -> None:
        while True:
            started = time.monotonic()
            await asyncio.to_thread(int)
            self.waits.append(time.monotonic() - started)
            await asyncio.sleep(0.02)

    async def _recalls(self) -> None:
        def recall() -> None:
            started = time.monotonic()
            self._recall()
            self.recalls.append(time.monotonic() - started)

        while True:
            await asyncio.to_thread(recall)
            await asyncio.sleep(0.1)

    async def _forks(self) -> None:
        while True:
            await asyncio.sleep(3.0)
            self.children[await exit_code_of_a_child(self._recall)] += 1
