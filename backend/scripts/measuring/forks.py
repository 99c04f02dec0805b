"""Children that a busy process forks. A part of the audit and of the soak."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import Callable

CHILD_SECONDS = 20


async def exit_code_of_a_child(work: Callable[[], object]) -> int:
    """Fork a child that does ``work`` and ends; return its exit code: 0 if the work was done, negative if it hung and was ended."""
    child = _fork(work)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        await asyncio.sleep(0.01)


def _fork(work: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the parent's threads, which are the point
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(CHILD_SECONDS)  # ends one that hangs
            work()
            code = 0
        finally:
            os._exit(code)
    return child
