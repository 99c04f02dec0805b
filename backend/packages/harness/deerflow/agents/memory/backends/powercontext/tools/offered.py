"""Which tools the model is offered, what each does, and what it tells of the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..deadline import Deadline
from ..errors import PowerContextError
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from . import wording
from .changing import NotChanged
from .correcting import Corrector
from .descriptions import DESCRIPTIONS
from .forgetting import Forgetter
from .outcomes import NotSaved
from .saving import Saver
from .searching import Finder, Found, NotLookedUp, as_result

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what it does, and what the model is told of the outcome.

    Attributes:
        call: Does it, on a thread of ours.
        refuse: Makes the outcome of a call that never began, of a reason and an error.
        tell: Returns the result for the model, or the sentence why nothing was done.
    """

    call: Callable[[Binding, Payload, Deadline], Any]
    refuse: Callable[[Any, PowerContextError], Any]
    tell: Callable[[Any, Payload], dict[str, Any] | str]


def offered_tools(settings: PowerContextSettings) -> dict[str, Tool]:
    """Return the tools that ``POWERCONTEXT_DEERFLOW_TOOLS`` names, by name, in the order in which a model sees them."""
    saver, finder, corrector, forgetter = Saver(settings), Finder(settings), Corrector(settings), Forgetter(settings)

    def remember(binding: Binding, given: Payload, deadline: Deadline) -> Any:
        return saver.save(binding, given.get("kind"), given.get("text"), deadline=deadline)

    def recall(binding: Binding, given: Payload, deadline: Deadline) -> Any:
        return finder.find(binding, given.get("query"), deadline=deadline)

    def correct(binding: Binding, given: Payload, deadline: Deadline) -> Any:
        return corrector.correct(binding, given.get("citation"), given.get("text"), deadline=deadline)

    def forget(binding: Binding, given: Payload, deadline: Deadline) -> Any:
        return forgetter.forget(binding, given.get("citation"), deadline=deadline)

    tools = {
        "remember": Tool(remember, NotSaved, _told_of_remember),
        "recall": Tool(recall, NotLookedUp, _told_of_recall),
        "correct": Tool(correct, NotChanged, _told_of_correct),
        "forget": Tool(forget, NotChanged, _told_of_forget),
    }
    return {name: tools[name] for name in DESCRIPTIONS if name in settings.tools}


def _told_of_remember(outcome: Any, given: Payload) -> dict[str, Any] | str:
    if isinstance(outcome, NotSaved):
        return wording.why_not_saved(outcome, given.get("text"))
    return wording.saved(outcome)


def _told_of_recall(outcome: Any, _given: Payload) -> dict[str, Any] | str:
    return as_result(outcome) if isinstance(outcome, Found) else wording.why_not_looked_up(outcome.reason)


def _told_of_correct(outcome: Any, given: Payload) -> dict[str, Any] | str:
    if isinstance(outcome, NotChanged):
        return wording.why_not_changed("correct", outcome, given.get("text"))
    return wording.corrected(outcome)


def _told_of_forget(outcome: Any, _given: Payload) -> dict[str, Any] | str:
    if isinstance(outcome, NotChanged):
        return wording.why_not_changed("forget", outcome)
    return wording.forgotten(outcome)
