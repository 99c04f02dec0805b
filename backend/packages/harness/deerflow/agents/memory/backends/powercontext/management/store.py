"""DeerFlow's fact operations for one person at a time. What comes back, or is raised, is what DeerFlow can say truly.

DeerFlow's contract has fewer words than there are outcomes: a document, ``KeyError`` (gone), ``ValueError`` (a plain
sentence for the model), its conflict error (changed meanwhile), and other errors, whose text the model gets and the log
a traceback of. So every text here is fixed: none holds content.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..deadline import Deadline
from ..errors import PowerContextBusyError, PowerContextError
from ..host import ConflictError, ManagerError, MemoryUnavailableError
from ..process import shared_client
from ..sanitizing import without_host_tags
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from ..tools.changing import AlreadySo as NothingToChange
from ..tools.changing import Changed, NotChanged
from ..tools.changing import Outcome as ChangeOutcome
from ..tools.correcting import Corrector
from ..tools.forgetting import Forgetter
from ..tools.outcomes import AlreadySaved, NotSaved, Saved
from ..tools.saving import Saver
from ..tools.searching import Finder, NotLookedUp
from ..tools.wording import UNKNOWN, why_not_changed, why_not_looked_up, why_not_saved
from . import wording
from .facts import citation_of, document, fact, fact_id
from .gate import Gate
from .reading import read_document

MAX_FOUND: Final = 50
"""The most memories a search returns, whatever is asked for."""

_Result = TypeVar("_Result")


class FactStore:
    """Memories as facts. Safe for any number of threads; at most two of them wait for the server at a time."""

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._finder = Finder(settings)
        self._saver = Saver(settings)
        self._corrector = Corrector(settings)
        self._forgetter = Forgetter(settings)
        self._gate = Gate()

    def search(self, binding: Binding | None, query: str, top_k: int, category: str | None) -> list[dict[str, Any]]:
        """Return up to ``top_k`` memories near ``query``, the best first; none for a person without a binding.

        Raises:
            MemoryManagerError: The server could not be asked; never an empty list in that case.
        """
        if binding is None or not query.strip() or top_k < 1:
            return []
        found = self._ask(lambda: self._finder.find(binding, query))
        if isinstance(found, NotLookedUp):
            raise MemoryUnavailableError(why_not_looked_up(found.reason))
        facts = (fact(hit.citation, without_host_tags(hit.text), hit.kind) for hit in found.hits)
        return [item for item in facts if category is None or item["category"] == category][: min(top_k, MAX_FOUND)]

    def document(self, binding: Binding | None) -> dict[str, Any]:
        """Return all of the person's memories as DeerFlow's document; an empty one without a binding.

        Raises:
            MemoryManagerError: They could not be listed within ``recall_timeout_seconds``.
        """
        if binding is None:
            return document([])
        return self._ask(
            lambda: read_document(
                shared_client(self._settings),
                binding,
                Deadline.after(self._settings.recall_timeout_seconds),
            ),
        )

    def create(self, binding: Binding | None, content: object, category: object) -> tuple[dict[str, Any], str]:
        """Save a memory, and return the document and the fact's id.

        Raises:
            ValueError: It was there before (``Duplicate fact``, which DeerFlow knows), or cannot be saved as it is.
            MemoryUnavailableError: The server has not got it.
            MemoryManagerError: It is not known whether the server has it.
        """
        if binding is None:
            raise ValueError(wording.NOBODY)
        kind = category if isinstance(category, str) else ""
        outcome = self._write(
            lambda deadline: self._saver.save(binding, kind, content, any_kind=True, deadline=deadline),
        )
        if isinstance(outcome, Saved):
            identifier = fact_id(outcome.citation)
            return self._document_with(
                binding,
                fact(outcome.citation, without_host_tags(str(content).strip()), kind),
            ), identifier
        if isinstance(outcome, AlreadySaved):
            raise ValueError("Duplicate fact")
        if isinstance(outcome, NotSaved):
            kind_of_error = MemoryUnavailableError if outcome.reason in wording.SERVER_REASONS else ValueError
            raise kind_of_error(
                wording.NOT_A_CATEGORY if outcome.reason == "unknown_kind" else why_not_saved(outcome, content),
            )
        raise ManagerError(UNKNOWN)

    def update(
        self,
        binding: Binding | None,
        identifier: object,
        content: object,
        category: str | None,
    ) -> dict[str, Any]:
        """Correct a memory, and return the document.

        Raises:
            KeyError: There is no such memory, or it is forgotten.
            ValueError: The new text cannot be saved, or this memory may not be changed.
            MemoryConflictError: It was changed meanwhile.
            MemoryUnavailableError: The server has not changed it.
            MemoryManagerError: It is not known whether the server has changed it.
        """
        citation = self._cited(binding, identifier)
        if binding is None or citation is None:
            raise KeyError(wording.GONE)
        if content is None:
            raise ValueError(wording.NO_NEW_TEXT)
        outcome = self._write(
            lambda deadline: self._corrector.correct(binding, citation, content, kind=category, deadline=deadline),
        )
        return self._after(binding, outcome)

    def delete(self, binding: Binding | None, identifier: object) -> dict[str, Any]:
        """Forget a memory, and return the document.

        Raises:
            KeyError: There is no such memory, or it is forgotten already.
            ValueError: This memory may not be changed.
            MemoryConflictError: It was changed meanwhile.
            MemoryUnavailableError: The server has not forgotten it.
            MemoryManagerError: It is not known whether the server has forgotten it.
        """
        citation = self._cited(binding, identifier)
        if binding is None or citation is None:
            raise KeyError(wording.GONE)
        outcome = self._write(lambda deadline: self._forgetter.forget(binding, citation, deadline=deadline))
        if isinstance(outcome, NothingToChange):
            raise KeyError(wording.GONE)
        return self._after(binding, outcome)

    def _cited(self, binding: Binding | None, identifier: object) -> dict[str, Any] | None:
        return None if binding is None else citation_of(identifier)

    def _after(self, binding: Binding, outcome: ChangeOutcome) -> dict[str, Any]:
        if isinstance(outcome, Changed | NothingToChange):
            return self._document_with(binding)
        if not isinstance(outcome, NotChanged):
            raise ManagerError(wording.UNKNOWN_CHANGE)
        if outcome.reason in wording.GONE_REASONS:
            raise KeyError(wording.GONE)
        if outcome.reason == "changed_meanwhile":
            raise ConflictError(wording.CHANGED_MEANWHILE)
        kind_of_error = MemoryUnavailableError if outcome.reason in wording.SERVER_REASONS else ValueError
        raise kind_of_error(why_not_changed("correct", outcome))

    def _document_with(self, binding: Binding, *known: dict[str, Any]) -> dict[str, Any]:
        """Return the document after a change that is confirmed.

        A list that cannot be read must not make it a failure.
        """
        try:
            return self.document(binding)
        except ManagerError:
            return document(known)

    def _write(self, operation: Callable[[Deadline], _Result]) -> _Result:
        """Run a write with ``remember_timeout_seconds`` for all of its steps: DeerFlow's own threads wait for it."""
        return self._ask(lambda: operation(Deadline.after(self._settings.remember_timeout_seconds)))

    def _ask(self, operation: Callable[[], _Result]) -> _Result:
        """Run ``operation`` while holding a place at the gate; what the client raises becomes DeerFlow's error."""
        started = time.monotonic()
        try:
            with self._gate.inside():
                return operation()
        except PowerContextBusyError:
            failure = MemoryUnavailableError(wording.BUSY)
        except PowerContextError as error:
            wording.log_failure(error, time.monotonic() - started)
            failure = MemoryUnavailableError(wording.FAILED)
        raise failure
