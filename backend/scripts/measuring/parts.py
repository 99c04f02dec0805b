"""What the measuring scripts share: our backend set up, a server in another process, numbers about this one.

Importing this puts the backend on ``sys.path``; its name sorts before ``powercontext_support`` and ``deerflow``.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
BACKEND = SCRIPTS.parents[1]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from powercontext_support import OWNER, SCOPE, TOKEN  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.backends.powercontext.settings.loading import PowerContextSettings, load_settings, reset_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver  # noqa: E402

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_PREFIX = "POWERCONTEXT_DEERFLOW_"
_building = threading.Lock()

Backend = tuple[PowerContextMemoryManager, Saver, PowerContextSettings]

# Thousands of faults on purpose would fill the screen.
logging.getLogger("deerflow").addHandler(logging.NullHandler())


@contextmanager
def backend(base_url: str, *, proxy_url: str | None = None, **settings: str) -> Iterator[Backend]:
    """Yield a manager, a saver and the settings for ``base_url``, and close them; ``settings`` are those of the environment.

    They keep their settings whatever is built later, so several may be open at a time.
    """
    values = {"base_url": base_url, "owner_user_id": OWNER, "scope_id": SCOPE, "token": TOKEN} | settings
    with _building:
        for name in list(os.environ):
            if name.startswith(_PREFIX) or name.upper() in _PROXIES:
                del os.environ[name]
        os.environ |= {_PREFIX + name.upper(): value for name, value in values.items()}
        os.environ |= {"HTTPS_PROXY": proxy_url} if proxy_url else {}
        reset_settings()
        snapshot = load_settings()
        manager = PowerContextMemoryManager(backend_config={})
    try:
        yield manager, Saver(snapshot), snapshot
    finally:
        manager.close()


@contextmanager
def server_process(script: str, *arguments: str) -> Iterator[Any]:
    """Run ``script`` of this folder, and yield the JSON it prints first. It has to end when its standard input does."""
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(number)`` in ``count`` threads, wait for all of them, and raise what one of them raised."""
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(work, number) for number in range(count)]:
            future.result()


@dataclass(frozen=True)
class ProcessState:
    """What this process holds right now, as Linux tells it."""

    rss_mib: float
    descriptors: int
    sockets: int
    threads: int

    @classmethod
    def now(cls) -> ProcessState:
        """Read ``/proc/self``."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        targets = []
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # that of the listing itself, or one just closed
                targets.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sockets = sum(target.startswith("socket:") for target in targets)
        return cls(int(status["VmRSS"].split()[0]) / 1024, len(targets), sockets, int(status["Threads"]))

    def __str__(self) -> str:
        return f"{self.rss_mib:.1f} MiB, {self.descriptors} descriptors ({self.sockets} sockets), {self.threads} threads"
