"""What a silent server costs strangers on a host with six threads for everybody's blocking work. A part of ``deadlines.py``."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from deadline_faults import unread
from parts import backend
from powercontext_support import OWNER

from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.tools.tool_calls import CALL_SECONDS, run

POOL_THREADS = 6
STUCK_SAVES = 8
RECALLS = 40
MAX_WAIT_SECONDS = 0.5
MAX_RECALLS_SECONDS = 3.5


def stranger_and_recalls() -> tuple[float, float]:
    """Return how long a stranger waits at most while eight saves are stuck, and how long forty recalls take together, in seconds.

    With the default limits: 5 s a step of a save, 2 s a recall.
    """
    with unread() as place, backend(place.base_url) as (manager, saver, settings):
        [binding, *_] = settings.people.bindings

        def save(number: int, deadline: Deadline) -> object:
            return saver.save(binding, "fact", f"Memory number {number}.", deadline=deadline)

        async def call(number: int) -> None:
            deadline = Deadline.after(CALL_SECONDS)
            await run(lambda: save(number, deadline), deadline=deadline, abandoned=lambda _outcome: None)

        async def serve() -> tuple[float, float]:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL_THREADS))
            saves = [asyncio.create_task(call(number)) for number in range(STUCK_SAVES)]
            waits = []
            for _ in range(20):
                started = time.monotonic()
                await asyncio.to_thread(int)
                waits.append(time.monotonic() - started)
                await asyncio.sleep(0.05)
            started = time.monotonic()
            await asyncio.gather(*(manager.aget_context(OWNER, query=f"refund {number}") for number in range(RECALLS)))
            seconds = time.monotonic() - started
            for save_under_way in saves:
                save_under_way.cancel()
            await asyncio.gather(*saves, return_exceptions=True)
            return max(waits), seconds

        return asyncio.run(serve())
