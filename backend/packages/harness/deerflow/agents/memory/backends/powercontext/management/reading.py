"""Reading a Scope for DeerFlow's memory tools and page: the memories near a query, and the list of all."""

from __future__ import annotations

from typing import Any, Final

from ..api.client import PowerContextClient
from ..api.listing_models import ListedMemory
from ..api.models import ArtifactReference, Citation
from ..deadline import Deadline
from ..errors import PowerContextError
from ..sanitizing import without_host_tags
from ..settings.people import Binding
from .facts import document, fact

MAX_LISTED: Final = 500
"""So many memories a document has; DeerFlow's page shows them all at once."""


def read_document(client: PowerContextClient, binding: Binding, deadline: Deadline) -> dict[str, Any]:
    """Return the Scope's memories as DeerFlow's document, up to ``MAX_LISTED``, within ``deadline``.

    Times are there where the server tells them before half of the time is gone.

    Raises:
        PowerContextError: The memories could not be listed.
    """
    listed, complete = _list_memories(client, binding, deadline)
    times = _times(client, binding, len(listed), deadline.within(deadline.left() / 2))
    facts = [
        _with_times(
            fact(memory.citation, without_host_tags(memory.text), memory.kind),
            _written_at(memory.citation, times),
        )
        for memory in listed
    ]
    return document(facts, total=None if complete else client.get_stats(binding, deadline=deadline).active_memories)


def _list_memories(client: PowerContextClient, binding: Binding, deadline: Deadline) -> tuple[list[ListedMemory], bool]:
    """Return the first ``MAX_LISTED`` memories, and whether these are all."""
    listed: list[ListedMemory] = []
    cursor: str | None = None
    while len(listed) <= MAX_LISTED:
        page = client.list_memory_entries(binding, cursor, deadline=deadline)
        listed += page.entries
        cursor = page.next_cursor
        if cursor is None or not page.entries:
            break
    return listed[:MAX_LISTED], cursor is None and len(listed) <= MAX_LISTED


def _times(client: PowerContextClient, binding: Binding, count: int, deadline: Deadline) -> dict[tuple[str, int], str]:
    """Return when revisions were written, as far as the server tells.

    Version 1.2.0 does not, and a slow one may not in time.
    """
    times: dict[tuple[str, int], str] = {}
    cursor: str | None = None
    try:
        while len(times) < count:
            page = client.list_artifacts(binding, cursor, deadline=deadline)
            times |= {(item.artifact_id, item.revision): item.created_at for item in page.items}
            cursor = page.next_cursor
            if cursor is None or not page.items:
                break
    except PowerContextError:
        pass
    return times


def _written_at(citation: Citation, times: dict[tuple[str, int], str]) -> str | None:
    return times.get((citation.artifact_id, citation.revision)) if isinstance(citation, ArtifactReference) else None


def _with_times(item: dict[str, Any], written_at: str | None) -> dict[str, Any]:
    """Add when a memory was written.

    The server tells that of its present revision: only the first one's is when it was made.
    """
    if written_at is None:
        return item
    first = item["id"].endswith("@1")
    return item | ({"createdAt": written_at} if first else {"updatedAt": written_at})
