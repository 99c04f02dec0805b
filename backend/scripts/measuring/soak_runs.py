"""Runs as DeerFlow makes them, beside the recalls of ``soak.py``: cancelled at a random moment, or in a forked child."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from devhost.plugins import Registry, call_tool
from faulty_server import memory_of
from forks import exit_code_of_a_child
from powercontext_support import OWNER

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager, remember_tool

POOL_THREADS = 6
RUNS_AT_A_TIME = 4
MAX_CANCEL_SECONDS = 0.3
SECONDS_BETWEEN_FORKS = 0.1


def recalled(context: str, case: str) -> str:
    """Return what a recall for ``case`` came to: ``memory``, ``nothing``, or that it got what was not its own."""
    return {memory_of(case): "memory", "": "nothing"}.get(context, "WRONG TEXT")


class Runs:
    """Recalls and saves on one event loop until ``stop``, many of them cancelled under way, and children that recall once.

    Attributes:
        ends: What the runs came to: ``memory``, ``nothing``, ``saved``, ``unknown``, ``not saved``, ``cancelled`` and what else there may be.
        children: The exit codes of the forked children.
    """

    def __init__(self, manager: PowerContextMemoryManager, seed: int) -> None:
        registry = Registry()
        remember_tool.install(registry, {})
        self.ends: Counter[str] = Counter()
        self.children: Counter[int] = Counter()
        self._remember = next(tool for tool in registry.contributions["powercontext"].tools if tool.name == "remember")
        self._manager = manager
        self._random = random.Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no more, and wait for those under way."""
        self._stopped.set()
        self._thread.join()

    def report(self) -> bool:
        """Print what was seen; return whether every run came to an end it may come to, and no child hung."""
        hung = sum(count for code, count in self.children.items() if code)
        print(f"{self.ends.total()} runs beside them: " + ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items())))
        print(f"{self.children.total()} children forked, {hung} of them hung or failed")
        return set(self.ends) <= {"memory", "nothing", "saved", "unknown", "not saved", "cancelled"} and self.ends["cancelled"] > 0 and self.children.total() > 0 and not hung

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL_THREADS))
        await asyncio.gather(self._forks(), *(self._runs(number) for number in range(RUNS_AT_A_TIME)))

    async def _runs(self, first: int) -> None:
        number = first
        while not self._stopped.is_set():
            run = asyncio.ensure_future(self._recall(number) if self._random.random() < 0.5 else self._save(number))
            if self._random.random() < 0.5:
                await asyncio.wait([run], timeout=MAX_CANCEL_SECONDS * self._random.random() ** 3)  # most while something is under way
                run.cancel()
            try:
                self.ends[await run] += 1
            except asyncio.CancelledError:
                self.ends["cancelled"] += 1
            number += RUNS_AT_A_TIME

    async def _recall(self, number: int) -> str:
        return recalled(await self._manager.aget_context(OWNER, query=f"Refunds of case{number}"), f"case{number}")

    async def _save(self, number: int) -> str:
        message = await call_tool(self._remember, {"text": f"Soak entry{number}: the depot opens at six.", "kind": "fact"}, {"user_id": OWNER})
        return str(json.loads(message.content)["outcome"]) if message.status == "success" else message.content.partition(":")[0].lower()

    async def _forks(self) -> None:
        def recall_once() -> None:
            assert recalled(self._manager.get_context(OWNER, query="Refunds of case77"), "case77") != "WRONG TEXT"

        while not self._stopped.is_set():
            await asyncio.sleep(SECONDS_BETWEEN_FORKS)
            self.children[await exit_code_of_a_child(recall_once)] += 1
