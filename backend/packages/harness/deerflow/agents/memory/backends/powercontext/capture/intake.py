"""From the host's calls to the outbox, on a thread of our own.

The host waits for it a moment, and never for the disk.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..api.client import PowerContextClient
from ..deadline import Deadline
from ..errors import PowerContextConfigurationError, PowerContextOutboxError
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from ..transport.forking import in_forked_children
from .delivery import Delivery
from .log import CaptureLog, announce
from .outbox import Outbox
from .outbox_models import Heard, Limits
from .selection import KeepHidden, read_turns
from .worker import Worker

WAIT_SECONDS: Final = 0.02
"""How long a call waits for its conversation to be queued. It goes on behind the call after that."""

MAX_CALLS: Final = 200
"""How many conversations wait for the disk. Each holds the messages that the host has in memory anyway."""


def start_capture(
    settings: PowerContextSettings,
    client: PowerContextClient,
    backend_config: Mapping[str, Any],
) -> Capture:
    """Return capture as ``settings`` say, in the host's folder.

    Raises:
        PowerContextConfigurationError: The host names no folder.
    """
    folder = backend_config.get("storage_path")
    if not isinstance(folder, str) or not folder:
        raise PowerContextConfigurationError(
            "POWERCONTEXT_DEERFLOW_CAPTURE needs a folder for its outbox: DeerFlow names one, or set memory.backend_config.storage_path",
        )
    return Capture(settings, client, Path(folder))


@dataclass
class _Call:
    user_id: str = field(repr=False)
    binding: Binding
    thread_id: str = field(repr=False)
    messages: list[Any] = field(repr=False)
    compaction: bool
    settled: threading.Event = field(default_factory=threading.Event)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def settle(self) -> None:
        """Let go whoever waits."""
        self.settled.set()
        for listener in self.listeners:
            listener()


class Capture:
    """Capture of conversations as the manager uses it.

    No thread, file or request before the first conversation of a bound person.

    Attributes:
        keep_hidden: The host's hook that tells a hidden reply of the user's from what the host hides.
    """

    def __init__(self, settings: PowerContextSettings, client: PowerContextClient, storage_path: Path) -> None:
        self.keep_hidden: KeepHidden | None = None
        self._settings = settings
        self._log = CaptureLog()
        limits = Limits(settings.capture_max_entries, settings.capture_max_bytes, settings.capture_max_days * 86400.0)
        self._outbox = Outbox(storage_path, limits)
        self._delivery = Delivery(self._outbox, client, settings.people, storage_path, self._log)
        self._worker = Worker("powercontext-capture", self._step)
        self._stopped = False
        self._start()
        in_forked_children(self._start)
        announce(settings.capture)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[_Call] = deque()

    def resume(self) -> None:
        """Go on sending what waits from before a restart."""
        if self._outbox.exists():
            self._delivery.wake()

    def hear(self, user_id: object, thread_id: object, messages: object, *, compaction: bool = False) -> _Call | None:
        """Take a conversation in; return what to wait for, or ``None`` if nothing of it is captured."""
        binding = self._settings.people.binding_of(user_id)
        if self._stopped or binding is None:
            return None
        if not isinstance(thread_id, str) or not thread_id.strip():
            return None
        if not isinstance(messages, list | tuple) or not messages:
            return None
        call = _Call(str(user_id), binding, thread_id, list(messages), compaction)
        with self._lock:
            full = len(self._calls) >= MAX_CALLS
            if not full:
                self._calls.append(call)
        if full:
            self._log.busy()
            return None
        return call if self._worker.wake() else None

    def wait(self, call: _Call | None) -> None:
        """Wait until ``call`` is queued, for a moment; not at all on a thread that runs an event loop."""
        if call is not None and not _runs_an_event_loop():
            call.settled.wait(WAIT_SECONDS)

    async def settled(self, call: _Call | None) -> None:
        """Wait until ``call`` is queued, for a moment, and leave the event loop to others meanwhile."""
        if call is None:
            return
        from asyncio import get_running_loop

        loop = get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(end)

        timer = loop.call_later(WAIT_SECONDS, end)
        call.listeners.append(tell)
        try:
            if not call.settled.is_set():
                await over
        finally:
            timer.cancel()

    def flush(self, timeout_seconds: float) -> bool:
        """Queue what was heard and send what can be sent, within ``timeout_seconds``; the rest stays in the outbox."""
        deadline = Deadline.after(timeout_seconds)
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.settled.wait(deadline.left())
        return self._delivery.flush(deadline) if self._outbox.exists() else True

    def close(self) -> None:
        """Send nothing more. What is heard from now on is still queued. Idempotent."""
        self._delivery.close()
        self._worker.close()

    def _step(self) -> float | None:
        """Queue what was heard, in one transaction, and have it sent."""
        with self._lock:
            calls = list(self._calls)
        try:
            self._queue(calls)
        except Exception as error:  # noqa: BLE001 - the thread must go on, whatever the host's messages are made of
            self._log.missed(error)
            self._stopped = self._stopped or (isinstance(error, PowerContextOutboxError) and error.lasting)
        with self._lock:
            for call in calls:
                self._calls.popleft()
                call.settle()
            more = bool(self._calls)
        return 0.0 if more else None

    def _queue(self, calls: list[_Call]) -> None:
        heard = []
        for call in calls:
            try:
                turns = read_turns(
                    call.messages,
                    answers=self._settings.capture == "turns",
                    keep_hidden=self.keep_hidden,
                )
            except Exception as error:  # noqa: BLE001 - one conversation of unknown shape must not cost the others
                self._log.missed(error)
                continue
            heard.append(
                Heard(call.user_id, call.binding.scope_id.get_secret_value(), call.thread_id, turns, call.compaction),
            )
        if heard:
            counts = self._outbox.hear(heard)
            self._log.heard(counts)
            if counts["queued"]:
                self._delivery.wake()


def _runs_an_event_loop() -> bool:
    """Tell whether this thread runs one; asyncio costs 12 ms to import, and who runs a loop has it."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
