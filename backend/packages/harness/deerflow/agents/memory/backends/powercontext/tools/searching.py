"""Looking up what is remembered, for a model that asks in its own words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..api.models import Hit
from ..deadline import Deadline
from ..errors import PowerContextError
from ..process import shared_client
from ..recall.recalling import Recall
from ..sanitizing import result_without_host_tags
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from . import outcomes
from .outcomes import reason_of

MAX_MEMORIES: Final = 8
MAX_RESULT_BYTES: Final = 16_384
"""Of the whole result, as JSON in UTF-8."""

Reason = outcomes.Reason | Literal["no_query", "failed"]


@dataclass(frozen=True, slots=True)
class Found:
    """The memories that have to do with the query, the nearest first; maybe none."""

    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class NotLookedUp:
    """It is not known what is remembered.

    Attributes:
        reason: Why.
        error: What the exchange said, if there was one.
    """

    reason: Reason
    error: PowerContextError | None = None


class Finder:
    """Looks memories up through the process's client. Safe for any number of threads."""

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings

    def find(self, binding: Binding, query: object, *, deadline: Deadline | None = None) -> Found | NotLookedUp:
        """Return the memories nearest to ``query``, or why they cannot be looked up.

        Args:
            binding: Whose memory.
            query: Words of what is looked for; anything but a text with a word in it is refused.
            deadline: Of the whole call; it ends after ``recall_timeout_seconds`` at the latest.
        """
        if not isinstance(query, str) or not any(map(str.isalnum, query)):
            return NotLookedUp("no_query")
        seconds = self._settings.recall_timeout_seconds
        try:
            limit = deadline.within(seconds) if deadline else Deadline.after(seconds)
            hits = Recall(shared_client(self._settings)).find(binding, query, deadline=limit)
        except PowerContextError as error:
            reason = reason_of(error)
            return NotLookedUp("failed" if reason == "refused" else reason, error)
        return Found(tuple(hit for hit in hits if hit.state == "active"))


def as_result(found: Found) -> dict[str, Any]:
    """Return the result of ``recall``: whole memories, no more than the limits allow, and whether there are more."""
    memories: list[dict[str, Any]] = []
    result: dict[str, Any] = {"memories": memories, "more": True}
    for hit in found.hits[:MAX_MEMORIES]:
        memory = {"text": hit.text, "kind": hit.kind, "citation": hit.citation.model_dump(mode="json")}
        memories.append(result_without_host_tags(memory))
        if len(json.dumps(result, ensure_ascii=False).encode()) > MAX_RESULT_BYTES:
            memories.pop()
            break
    result["more"] = len(found.hits) > len(memories)
    return result
