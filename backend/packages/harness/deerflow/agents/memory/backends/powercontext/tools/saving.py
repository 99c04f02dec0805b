"""Saving one memory: look up, write once, read back. What comes out is only what the server confirmed.

A client's time-out does not cancel a write (50 of 50 abandoned writes were committed on 1.4.1), servers since 1.3 store
an identical text again, and there is no idempotency key. So a write is never repeated, and one whose end is not known
is looked for.
"""

from __future__ import annotations

import threading
import unicodedata
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..client import PowerContextClient
from ..config import PowerContextSettings
from ..deadline import Deadline
from ..errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)
from ..models import ArtifactReference, Citation, Hit
from ..people import Binding
from ..process import shared_client
from ..transport.forking import in_forked_children

KINDS: Final = ("fact", "preference", "decision", "constraint", "convention")
MAX_TEXT_BYTES: Final = 8192
"""The API's limit of ``text``: UTF-8 bytes, after NFC and strip (1.4.1 and 1.2.0)."""

# Three steps end within 27 s, and DeerFlow gives up at 30, whatever the settings allow.
MAX_STEP_SECONDS: Final = 9.0

Reason = Literal["empty", "too_long", "not_unicode", "unknown_kind", "token", "scope", "unreachable", "overloaded", "refused"]


@dataclass(frozen=True, slots=True)
class Saved:
    """The server confirmed the memory.

    Attributes:
        citation: The server's.
        by_read_back: Whether a look-up confirmed it, after the reply to the write was lost.
    """

    citation: Citation
    by_read_back: bool = False


@dataclass(frozen=True, slots=True)
class AlreadySaved:
    """The server had this memory; nothing was added.

    Attributes:
        citation: The server's, or ``None`` if no bounded look-up told it.
        memory_revision: The Memory's revision, which servers before 1.3 tell.
    """

    citation: Citation | None
    memory_revision: ArtifactReference | None = None


@dataclass(frozen=True, slots=True)
class NotSaved:
    """The server has not got it, for certain.

    Attributes:
        reason: Why.
        error: What the exchange said, unless the text was refused before any.
    """

    reason: Reason
    error: PowerContextError | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request may have reached the server, and nothing tells whether it stored the text, now or in a moment."""

    error: PowerContextError


Outcome = Saved | AlreadySaved | NotSaved | Unknown


def normalize(text: str) -> str:
    """Return ``text`` as the server stores it: NFC, without white space around it."""
    return unicodedata.normalize("NFC", text).strip()


def refusal(kind: object, text: object) -> NotSaved | None:
    """Return why a memory cannot be saved, without asking the server, or ``None``."""
    if kind not in KINDS:
        return NotSaved("unknown_kind")
    if not isinstance(text, str) or not normalize(text):
        return NotSaved("empty")
    try:
        size = len(normalize(text).encode())
    except UnicodeEncodeError:
        return NotSaved("not_unicode")
    return NotSaved("too_long") if size > MAX_TEXT_BYTES else None


class Saver:
    """Saves memories through the process's client. Safe for any number of threads; an identical save under way is waited for, not repeated."""

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._step_seconds = min(settings.remember_timeout_seconds, MAX_STEP_SECONDS)
        self._start()
        in_forked_children(self._start)  # a child must not wait for its parent's saves

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Binding, str, str], Future[Outcome]] = {}

    def save(self, binding: Binding, kind: Any, text: Any, *, deadline: Deadline | None = None) -> Outcome:
        """Save ``text`` as a memory of ``kind`` in the person's Scope, and return what became of it.

        Anything but a good text is refused.

        Args:
            binding: Whose memory.
            kind: One of ``KINDS``.
            text: At most ``MAX_TEXT_BYTES``.
            deadline: Of the whole save, 27 s without one. Cancelling it lets no further step begin.
        """
        refused = refusal(kind, text)
        if refused is not None:
            return refused
        text = normalize(text)
        key = (binding, kind, text)
        with self._lock:
            earlier = self._under_way.get(key)
            if earlier is None:
                mine: Future[Outcome] = Future()
                self._under_way[key] = mine
        if earlier is not None:
            shared = earlier.result()
            return AlreadySaved(shared.citation) if isinstance(shared, Saved) else shared
        outcome: Outcome = Unknown(PowerContextError("the save was interrupted", operation="remember_memory"))
        try:
            client = shared_client(self._settings)
            outcome = _Save(client, binding, kind, text, deadline or Deadline.after(3 * MAX_STEP_SECONDS), self._step_seconds).run()
        finally:
            with self._lock:
                del self._under_way[key]
            mine.set_result(outcome)  # also for whoever waits if this thread is torn down
        return outcome


@dataclass(frozen=True, slots=True)
class _Save:
    """One save: what is saved for whom, and its steps."""

    client: PowerContextClient
    binding: Binding
    kind: str
    text: str
    deadline: Deadline
    step_seconds: float

    def run(self) -> Outcome:
        try:
            known = self._find()
        except (PowerContextAuthenticationError, PowerContextScopeNotFoundError) as error:
            return NotSaved(_reason(error), error)
        except PowerContextError:
            known = None
        if known is not None and known.kind is not None:
            return AlreadySaved(known.citation)
        try:
            written = self.client.remember_memory(self.binding, self.kind, self.text, deadline=self._step())
        except PowerContextError as error:
            return self._after_failed_write(error, was_there=known is not None)
        if written.changed and written.citation:
            return Saved(written.citation)
        found = known or self._try_to_find()
        return AlreadySaved(written.citation or (found.citation if found else None), written.memory_revision)

    def _step(self) -> Deadline:
        return self.deadline.within(self.step_seconds)

    def _after_failed_write(self, error: PowerContextError, *, was_there: bool) -> Outcome:
        if _proves_not_saved(error):
            return NotSaved(_reason(error), error)
        # Servers before 1.3 do not tell a hit's kind: a text that was there before the write may be another memory.
        found = None if was_there else self._try_to_find()
        return Saved(found.citation, by_read_back=True) if found else Unknown(error)

    def _try_to_find(self) -> Hit | None:
        try:
            return self._find()
        except PowerContextError:
            return None

    def _find(self) -> Hit | None:
        """Return the active memory with exactly this text and, where the server tells it, this kind.

        A question that fails is asked once more, within the same limit: that costs nothing, and without an answer a
        text may be stored twice, or a save be left unknown.
        """
        step = self._step()
        try:
            hits = self.client.search_memory(self.binding, self.text, deadline=step)
        except (PowerContextAuthenticationError, PowerContextCancelledError, PowerContextScopeNotFoundError):
            raise
        except PowerContextError:
            hits = self.client.search_memory(self.binding, self.text, deadline=step)
        for hit in hits:
            if hit.state == "active" and normalize(hit.text) == self.text and hit.kind in (None, self.kind):
                return hit
        return None


def _proves_not_saved(error: PowerContextError) -> bool:
    """Tell whether the server cannot have stored the text: it got no request, or refused it before doing anything."""
    if not error.may_have_been_sent:
        return True
    if not isinstance(error, PowerContextStatusError):
        return False
    return 300 <= error.status_code < 500 or error.code == "server_overloaded"


def _reason(error: PowerContextError) -> Reason:
    if isinstance(error, PowerContextAuthenticationError):
        return "token"
    if isinstance(error, PowerContextScopeNotFoundError):
        return "scope"
    if isinstance(error, PowerContextConnectionError | PowerContextCancelledError | PowerContextTimeoutError):
        return "unreachable"
    return "overloaded" if isinstance(error, PowerContextStatusError) and error.code == "server_overloaded" else "refused"
