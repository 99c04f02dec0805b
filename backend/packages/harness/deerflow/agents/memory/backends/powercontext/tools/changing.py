"""Changing one memory.

It is read, written on the condition that it still stands so, and read again where the outcome is not known.

A change that the server refused because the memory was changed meanwhile has not happened. One whose reply was lost is
looked for; once the memory stands otherwise than the write demanded, that write can never come true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Final, Literal

from ..api.client import PowerContextClient
from ..api.models import Citation
from ..deadline import Deadline
from ..errors import PowerContextCancelledError, PowerContextError, PowerContextStatusError
from ..settings.people import Binding
from . import outcomes
from .citations import Misread, read_citation
from .memories import Memory, Standing, memory_of
from .outcomes import proves_not_saved, reason_of

# Reading, writing and reading back end within 27 s, and DeerFlow gives up at 30, whatever the settings allow.
MAX_STEP_SECONDS: Final = 9.0

MAX_ATTEMPTS: Final = 4
"""How often a change is begun. Only one that the server certainly did not make is begun again."""

_CONFLICTS: Final = frozenset(
    {
        "revision_conflict",
        "atomic_memory_changed",
        "memory_entry_inactive",
        "artifact_not_found",
        "not_found",
        "memory_not_found",
    },
)

Reason = outcomes.Reason | Misread | Literal["no_such_memory", "changed_meanwhile", "is_forgotten", "is_set_aside", "not_yours", "contended", "failed"]


@dataclass(frozen=True, slots=True)
class Changed:
    """The server confirmed the change.

    Attributes:
        text: What the memory said before: what was forgotten, or corrected.
        citation: Names it as it stands now.
        by_read_back: Whether a look at it confirmed the change, after the reply was lost.
    """

    text: str = field(repr=False)
    citation: Citation
    by_read_back: bool = False


@dataclass(frozen=True, slots=True)
class AlreadySo:
    """The memory was so before; nothing was changed.

    Attributes:
        text: What it says, or said when it was forgotten.
        citation: Names it.
    """

    text: str = field(repr=False)
    citation: Citation


@dataclass(frozen=True, slots=True)
class NotChanged:
    """The change has not happened, for certain.

    Attributes:
        reason: Why.
        error: What the exchange said, if that is why.
        text: What the memory says now, where the reason is about that.
        citation: Names it as it stands now.
    """

    reason: Reason
    error: PowerContextError | None = None
    text: str | None = field(default=None, repr=False)
    citation: Citation | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The change may have happened, or may yet.

    Attributes:
        error: What happened to the write.
        text: What the memory said before.
        citation: Named it before.
    """

    error: PowerContextError
    text: str = field(repr=False)
    citation: Citation


Outcome = Changed | AlreadySo | NotChanged | Unknown


class Change(ABC):
    """One change of one memory, under one deadline."""

    def __init__(
        self,
        client: PowerContextClient,
        binding: Binding,
        citation: object,
        deadline: Deadline,
        step_seconds: float,
    ) -> None:
        self.client = client
        self.binding = binding
        self.citation = citation
        self.deadline = deadline
        self.step_seconds = step_seconds

    @abstractmethod
    def settle(self, standing: Standing) -> Outcome | None:
        """Return the outcome if nothing has to be written, or may be."""

    @abstractmethod
    def write(self, memory: Memory, standing: Standing, deadline: Deadline) -> Outcome:
        """Make the change, if ``standing`` still holds."""

    @abstractmethod
    def confirm(self, before: Standing, after: Standing) -> Outcome | None:
        """Return the outcome if ``after`` shows that the change was made."""

    @abstractmethod
    def may_yet_happen(self, before: Standing, after: Standing) -> bool:
        """Tell whether a write that demanded ``before`` can still come true, now that the memory is ``after``."""

    def run(self) -> Outcome:
        """Return what came of it."""
        cited = read_citation(self.citation, self.binding.scope_id.get_secret_value())
        if isinstance(cited, str):
            return NotChanged(cited)
        memory = memory_of(self.client, self.binding, cited)
        meant: Standing | None = None
        for _ in range(MAX_ATTEMPTS):
            try:
                outcome, standing = self._look(memory, meant)
            except PowerContextError as error:
                return NotChanged(_reason_of_failed_look(error), error)
            if standing is None or outcome is not None:
                return outcome or NotChanged("no_such_memory")
            meant = standing
            attempt = self._attempt(memory, standing)
            if attempt is not None:
                return attempt
        return NotChanged("contended")

    def _look(self, memory: Memory, meant: Standing | None) -> tuple[Outcome | None, Standing | None]:
        """Return how the memory stands, with the outcome if that settles it.

        ``meant`` is how it stood at the first look.
        """
        step = self._step()
        standing = _read(memory, step)
        if standing is None:
            return None, None
        outcome = self.settle(standing)
        if outcome is None:
            says = (standing.kind, standing.text)
            same = memory.is_meant(standing, step) if meant is None else (meant.kind, meant.text) == says
            outcome = None if same else NotChanged("changed_meanwhile", None, standing.text, standing.citation)
        return outcome, standing

    def _attempt(self, memory: Memory, standing: Standing) -> Outcome | None:
        """Return what came of a write, or ``None`` if it certainly came to nothing and may be begun again."""
        try:
            # Half of what is left is kept for reading back.
            return self.write(memory, standing, self._step().within(self.deadline.left() / 2))
        except PowerContextError as error:
            failure = error
        if isinstance(failure, PowerContextStatusError) and failure.code in _CONFLICTS:
            return None
        if proves_not_saved(failure):
            return NotChanged(_reason_of_refused_write(failure), failure)
        try:
            after = _read(memory, self._step())
        except PowerContextError:
            after = standing
        outcome = None if after is None else self.confirm(standing, after)
        if outcome is None and after is not None and self.may_yet_happen(standing, after):
            return Unknown(failure, standing.text, standing.citation)
        return outcome

    def _step(self) -> Deadline:
        return self.deadline.within(self.step_seconds)


def _read(memory: Memory, deadline: Deadline) -> Standing | None:
    """Return how ``memory`` stands. A question that fails is asked once more, within the same limit."""
    try:
        return memory.read(deadline)
    except PowerContextCancelledError:
        raise
    except PowerContextError as error:
        if isinstance(error, PowerContextStatusError) and error.status_code < 500:
            raise
    return memory.read(deadline)


def _reason_of_failed_look(error: PowerContextError) -> Reason:
    """Return what the model is told; nothing was written.

    A citation of the other generation is answered with 404 or 422. A 404 proves something only if PowerContext itself
    says it, with its error code or its request id: who wants a memory forgotten must not hear from a proxy that it is
    gone.
    """
    reason = reason_of(error)
    if isinstance(error, PowerContextStatusError) and reason != "scope":
        says_itself = (error.code or error.request_id) is not None
        if error.code == "legacy_memory_operation_unsupported" or (error.status_code == 404 and says_itself):
            return "no_such_memory"
    return "failed" if reason == "refused" else reason


def _reason_of_refused_write(error: PowerContextError) -> Reason:
    """Return what the model is told. Who may read a memory, but not change it, gets 403."""
    return "not_yours" if isinstance(error, PowerContextStatusError) and error.status_code == 403 else reason_of(error)
