"""From the outbox to the server.

It goes in order within a thread, with the same bytes until the server has them, and nothing for strangers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final, Literal

from ..api.client import PowerContextClient
from ..deadline import Deadline
from ..errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextError,
    PowerContextOutboxError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextUnavailableError,
)
from ..settings.people import Binding, People
from .backoff import Backoff
from .lease import Lease
from .log import CaptureLog
from .outbox import Outbox
from .outbox_models import Entry
from .worker import Worker

SEND_SECONDS: Final = 10.0
"""The limit of one exchange. A server under load took up to 5 s (1.4.1, 16 at a time, with authentication)."""

POLL_SECONDS: Final = 1.0
"""How often a process looks whether the one that delivers is still there."""

_MANY: Final = 3  # threads that fail in a row: then it is the server

Verdict = Literal["parked", "person", "thread", "server"]


def verdict_on(error: PowerContextError) -> Verdict:
    """Return what ``error`` concerns: only a refusal of this entry by PowerContext itself is final.

    A refused token and a missing Scope concern all of a person's entries, and end when an operator corrects them.
    """
    if isinstance(error, PowerContextAuthenticationError | PowerContextScopeNotFoundError):
        return "person"
    if isinstance(error, PowerContextUnavailableError) or not isinstance(error, PowerContextStatusError):
        return "server"
    refused = error.code is not None and 400 <= error.status_code < 500 and error.status_code not in (408, 425, 429)
    return "parked" if refused else "thread"


class _Flush:
    """A wish to send all that can be sent now, once."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.done = threading.Event()
        self.sent_all = False


class Delivery:
    """Sends what waits in the outbox, on one daemon thread of the process and in one process at a time."""

    def __init__(
        self,
        outbox: Outbox,
        client: PowerContextClient,
        people: People,
        storage_path: Path,
        log: CaptureLog,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._people = people
        self._log = log
        self._lease = Lease(storage_path)
        self._backoff = Backoff()
        self._failing: bytes | None = None
        self._flush: _Flush | None = None
        self._closed = False
        self._worker = Worker("powercontext-delivery", self._step)

    def wake(self) -> None:
        """Have what waits sent."""
        if not self._closed:
            self._worker.wake()

    def flush(self, deadline: Deadline) -> bool:
        """Try everything that waits once, and return whether all that can go is sent.

        It does not wait for a server that fails.
        """
        flush = self._flush = _Flush(deadline)
        if not self._closed and self._worker.wake():
            flush.done.wait(deadline.left())
        return flush.sent_all

    def close(self) -> None:
        """Begin nothing more. What is being sent ends within its own limit. Idempotent."""
        self._closed = True
        self._worker.close()

    def _step(self) -> float | None:
        """Send what can be sent now; return the seconds until there may be more, or ``None`` if nothing waits."""
        flush, self._flush = self._flush, None
        wait: float | None = None
        try:
            if not self._closed and self._outbox.exists():
                wait = self._send_waiting(flush) if self._lease.take() else self._wait_for_the_other()
        except PowerContextOutboxError as error:
            self._log.outbox_failed(error)
            wait = None if error.lasting else POLL_SECONDS
        except OSError as error:
            self._log.outbox_failed(
                PowerContextOutboxError(f"the lock beside the outbox cannot be used ({type(error).__name__})"),
            )
            wait = POLL_SECONDS
        if wait is None or self._closed:
            self._lease.give_back()
        if flush is not None:
            flush.sent_all = wait is None
            flush.done.set()
        return None if self._closed else wait

    def _wait_for_the_other(self) -> float | None:
        return POLL_SECONDS if self._outbox.waiting() else None

    def _send_waiting(self, flush: _Flush | None) -> float | None:
        if flush is None and (wait := self._backoff.wait_of("server")):
            return wait
        if expired := self._outbox.expire():
            self._log.expired(expired)
        # stable: the failing thread comes last
        entries = sorted(self._outbox.waiting(), key=lambda entry: entry.thread_key == self._failing)
        waits = self._send_each(entries, flush)
        return min(waits, default=None)

    def _send_each(self, entries: list[Entry], flush: _Flush | None) -> list[float]:
        """Send ``entries`` as far as it goes; return the waits of those that could not be sent now."""
        waits: dict[bytes, float] = {}
        verdicts: Counter[str] = Counter()
        destinations: dict[int, bytes] = {}
        for entry in entries:
            if self._closed or (flush is not None and not flush.deadline.left()):
                return [POLL_SECONDS]
            binding = self._binding_of(entry, destinations)
            if binding is None or entry.thread_key in waits:
                continue
            wait = max(map(self._backoff.wait_of, (("person", binding.position), entry.thread_key)))
            if wait and not flush:
                waits[entry.thread_key] = wait
                continue
            verdict = self._send(entry, binding, flush)
            if verdict in ("sent", "parked"):
                verdicts.clear()
                continue
            verdicts[verdict] += 1
            if verdict == "server" or verdicts["thread"] >= _MANY:
                self._backoff.failed("server")
                return [self._backoff.wait_of("server")]
            key = entry.thread_key if verdict == "thread" else ("person", binding.position)
            self._backoff.failed(key)
            waits[entry.thread_key] = self._backoff.wait_of(key)
        return list(waits.values())

    def _binding_of(self, entry: Entry, destinations: dict[int, bytes]) -> Binding | None:
        """Return the binding of the person ``entry`` is of, if it still leads to the Scope it was heard for."""
        binding = self._people.binding_of(entry.user_id)
        if binding is None:
            self._log.held()
            return None
        if binding.position not in destinations:
            destinations[binding.position] = self._outbox.destination_of(binding.scope_id.get_secret_value())
        if destinations[binding.position] != entry.destination:
            self._log.held()
            return None
        return binding

    def _send(self, entry: Entry, binding: Binding, flush: _Flush | None) -> Verdict | Literal["sent"]:
        source = self._outbox.read(entry)
        if source is None:  # purged
            return "sent"
        deadline = Deadline.after(SEND_SECONDS) if flush is None else flush.deadline.within(SEND_SECONDS)
        started = time.monotonic()
        try:
            self._client.capture_content_source(
                binding,
                source.source_id,
                source.content,
                source.metadata,
                deadline=deadline,
            )
        except PowerContextCancelledError:
            self._closed = True  # by the client, or by the end of the process
            return "server"
        except PowerContextError as error:
            return self._failed(entry, error, time.monotonic() - started)
        self._outbox.sent(entry)
        self._failing = None
        for key in ("server", ("person", binding.position), entry.thread_key):
            self._backoff.succeeded(key)
        self._log.sent()
        return "sent"

    def _failed(self, entry: Entry, error: PowerContextError, elapsed_seconds: float) -> Verdict:
        verdict = verdict_on(error)
        if verdict == "parked" and isinstance(error, PowerContextStatusError) and error.code:
            self._outbox.park(entry, error.code)
            self._log.parked(error, elapsed_seconds)
        else:
            self._failing = entry.thread_key
            self._log.failed(error, elapsed_seconds)
        return verdict
