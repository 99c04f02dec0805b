"""Saving one memory: look up, write once, read back. What comes out is only what the server confirmed.

A client's time-out does not cancel a write (50 of 50 abandoned writes were committed on 1.4.1), servers since 1.3 store
an identical text again, and there is no idempotency key. So a write is never repeated, and one whose end is not known
is looked for.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from ..api.client import PowerContextClient
from ..api.models import Hit
from ..deadline import Deadline
from ..errors import (
    PowerContextCancelledError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)
from ..process import shared_client
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from ..transport.forking import in_forked_children
from .exact_match import find
from .outcomes import AlreadySaved, NotSaved, Outcome, Saved, Unknown, normalize, proves_not_saved, reason_of, refusal

# Three steps end within 27 s, and DeerFlow gives up at 30, whatever the settings allow.
MAX_STEP_SECONDS: Final = 9.0


class Saver:
    """Saves memories through the process's client.

    Safe for any number of threads; an identical save under way is waited for, not repeated.
    """

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._step_seconds = min(settings.remember_timeout_seconds, MAX_STEP_SECONDS)
        self._start()
        in_forked_children(self._start)  # a child must not wait for its parent's saves

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Binding, str, str], Future[Outcome]] = {}

    def save(
        self,
        binding: Binding,
        kind: Any,
        text: Any,
        *,
        any_kind: bool = False,
        deadline: Deadline | None = None,
    ) -> Outcome:
        """Save ``text`` as a memory of ``kind`` in the person's Scope, and return what became of it.

        Anything but a good text is refused.

        Args:
            binding: Whose memory.
            kind: One of ``KINDS``.
            text: At most ``MAX_TEXT_BYTES``.
            any_kind: Take any kind that the API takes.
            deadline: Of the whole save, 27 s without one. Cancelling it lets no further step begin.
        """
        refused = refusal(kind, text, any_kind=any_kind)
        if refused is not None:
            return refused
        text = normalize(text)
        deadline = deadline or Deadline.after(3 * MAX_STEP_SECONDS)
        key = (binding, kind, text)
        while True:
            with self._lock:
                earlier = self._under_way.get(key)
                if earlier is None:
                    mine = self._under_way[key] = Future()
                    break
            shared = _outcome_of(earlier, deadline)
            # A cancelled one was never sent, and says nothing of this one.
            was_cancelled = isinstance(shared, NotSaved) and isinstance(shared.error, PowerContextCancelledError)
            if not was_cancelled or deadline.cancelled:
                return AlreadySaved(shared.citation) if isinstance(shared, Saved) else shared
        outcome: Outcome = Unknown(PowerContextError("the save was interrupted", operation="remember_memory"))
        try:
            outcome = _Save(shared_client(self._settings), binding, kind, text, deadline, self._step_seconds).run()
        finally:
            with self._lock:
                del self._under_way[key]
            mine.set_result(outcome)  # also for whoever waits if this thread is torn down
        return outcome


def _outcome_of(identical: Future[Outcome], deadline: Deadline) -> Outcome:
    """Wait for an identical save, and return what became of it."""
    try:
        return identical.result(deadline.left())
    except TimeoutError:
        return Unknown(
            PowerContextTimeoutError(
                "an identical save is still under way",
                operation="remember_memory",
                may_have_been_sent=True,
            ),
        )


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
        except PowerContextError as error:
            if not _cannot_search(error):
                return NotSaved(reason_of(error), error)
            known = None
        if known is not None and known.kind is not None:
            return AlreadySaved(known.citation)
        try:
            written = self.client.remember_memory(self.binding, self.kind, self.text, deadline=self._step())
        except PowerContextError as error:
            return self._after_failed_write(error, was_there=known is not None)
        if written.memory is not None:
            citation = written.memory.citation
            return Saved(citation) if written.changed else AlreadySaved(citation, written.memory_revision)
        found = known or self._try_to_find()
        if found is None and written.memory_revision is None:
            return Unknown(PowerContextResponseError("the reply names no memory", operation="remember_memory"))
        return AlreadySaved(found.citation if found else None, written.memory_revision)

    def _step(self) -> Deadline:
        return self.deadline.within(self.step_seconds)

    def _after_failed_write(self, error: PowerContextError, *, was_there: bool) -> Outcome:
        if proves_not_saved(error):
            return NotSaved(reason_of(error), error)
        # Servers before 1.3 do not tell a hit's kind: a text that was there before the write may be another memory.
        found = None if was_there else self._try_to_find()
        return Saved(found.citation, by_read_back=True) if found else Unknown(error)

    def _try_to_find(self) -> Hit | None:
        try:
            return self._find(patient=True)
        except PowerContextError:
            return None

    def _find(self, *, patient: bool = False) -> Hit | None:
        return find(self.client, self.binding, self.kind, self.text, deadline=self._step(), patient=patient)


def _cannot_search(error: PowerContextError) -> bool:
    """Tell whether PowerContext itself says that this search fails, with a server that works otherwise.

    Only then a text is written that nobody could look for. Whatever else keeps an answer away would keep away the
    answer to the write, too, and a text that is there already would be stored again.
    """
    return isinstance(error, PowerContextStatusError) and error.code == "internal_error"
