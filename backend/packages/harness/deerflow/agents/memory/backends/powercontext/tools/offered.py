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
from .finding import Finder, Found, NotLookedUp, as_result
from .forgetting import Forgetter
from .outcomes import NotSaved
from .saving import Saver

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
    tools = {
        "remember": Tool(
            lambda binding, given, deadline: saver.save(binding, given.get("kind"), given.get("text"), deadline=deadline),
            NotSaved,
            lambda outcome, given: wording.why_not_saved(outcome, given.get("text")) if isinstance(outcome, NotSaved) else wording.saved(outcome),
        ),
        "recall": Tool(
            lambda binding, given, deadline: finder.find(binding, given.get("query"), deadline=deadline),
            NotLookedUp,
            lambda outcome, given: as_result(outcome) if isinstance(outcome, Found) else wording.why_not_looked_up(outcome.reason),
        ),
        "correct": Tool(
            lambda binding, given, deadline: corrector.correct(binding, given.get("citation"), given.get("text"), deadline=deadline),
            NotChanged,
            lambda outcome, given: wording.why_not_changed("correct", outcome, given.get("text")) if isinstance(outcome, NotChanged) else wording.corrected(outcome),
        ),
        "forget": Tool(
            lambda binding, given, deadline: forgetter.forget(binding, given.get("citation"), deadline=deadline),
            NotChanged,
            lambda outcome, given: wording.why_not_changed("forget", outcome) if isinstance(outcome, NotChanged) else wording.forgotten(outcome),
        ),
    }
    return {name: tools[name] for name in DESCRIPTIONS if name in settings.tools}
