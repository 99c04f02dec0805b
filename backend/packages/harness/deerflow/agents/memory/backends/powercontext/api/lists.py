"""PowerContext's lists of a Scope's memories."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from ..deadline import Deadline
from ..settings.people import Binding
from ..transport.exchange import Transport
from .listing_models import ArtifactList, MemoryList
from .memory_models import MemoryPage
from .requests import get, post, success

MAX_PAGE: Final = 100
"""The most memories a page of a list has (1.4.1)."""

# Before 1.3 a list has no pages.
MAX_LIST_RESPONSE_BYTES: Final = 16 * 1024 * 1024


class ListOperations:
    """The part of the client that lists."""

    _transport: Transport

    def list_memory_entries(self, binding: Binding, cursor: str | None = None, *, deadline: Deadline) -> MemoryList:
        """Return a page of the Scope's active memories, by id (before 1.3: all of them).

        ``cursor`` is the page before's.
        """
        # 1.2.0 knows neither, and its list has no next page
        page = {"limit": MAX_PAGE, "cursor": cursor} if cursor else {}
        payload = {"scope_id": binding.scope_id.get_secret_value()} | page
        request = post(
            "list_memory_entries",
            "/v1/memory/entries/list",
            binding,
            payload,
            max_response_bytes=MAX_LIST_RESPONSE_BYTES,
        )
        return MemoryList.parse(*success(request, self._transport.exchange(request, deadline)))

    def list_artifacts(self, binding: Binding, cursor: str | None = None, *, deadline: Deadline) -> ArtifactList:
        """Return when a page of the Scope's memories were written, by id (1.3 and later)."""
        scope_id = quote(binding.scope_id.get_secret_value(), safe="")
        path = f"/v1/scopes/{scope_id}/artifacts/atomic-memory?limit={MAX_PAGE}" + (f"&cursor={quote(cursor, safe='')}" if cursor else "")
        request = get("list_artifacts", path, binding, max_response_bytes=MAX_LIST_RESPONSE_BYTES)
        return ArtifactList.parse(*success(request, self._transport.exchange(request, deadline)))

    def list_atomic_memories(
        self,
        binding: Binding,
        kind: str,
        cursor: str | None,
        *,
        deadline: Deadline,
    ) -> MemoryPage:
        """Return a page of the active memories of ``kind``, in the order of their ids; ``cursor`` is the page before's.

        Since 1.3.
        """
        payload = {"scope_id": binding.scope_id.get_secret_value(), "kind": kind, "limit": MAX_PAGE}
        if cursor:
            payload["cursor"] = cursor
        request = post(
            "list_atomic_memories",
            "/v1/atomic-memory/list",
            binding,
            payload,
            max_response_bytes=MAX_LIST_RESPONSE_BYTES,
        )
        return MemoryPage.parse(*success(request, self._transport.exchange(request, deadline)))
