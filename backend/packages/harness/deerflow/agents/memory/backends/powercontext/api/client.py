"""PowerContext's HTTP API as we use it: a short method per operation, named after its operationId."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ..deadline import Deadline
from ..errors import PowerContextResponseError
from ..settings.loading import PowerContextSettings
from ..settings.people import Binding
from ..transport.exchange import Request, Transport
from .changes import ChangeOperations
from .lists import ListOperations
from .memory_models import AtomicSearchReply
from .models import MAX_QUERY_CHARACTERS, Hit, PreparedContext, Remembered, Scope, SearchReply, SourceAccepted
from .requests import MAX_HITS, MAX_RESPONSE_BYTES, MAX_SEARCH_RESPONSE_BYTES, get, post, success
from .server_models import Capabilities, Readiness, ServerInfo, Stats

MAX_MATCHES: Final = 100
"""The most that a search of artifacts finds or a page of a list has (1.4.1)."""

# A recall need not have the worst of replies: as many memories of 8192 bytes each, with two bytes for one, and their
# envelopes.
MAX_ATOMIC_SEARCH_RESPONSE_BYTES: Final = MAX_HITS * (2 * 8192 + 4096)

_SURROGATE = re.compile("[\ud800-\udfff]")


class PowerContextClient(ListOperations, ChangeOperations):
    """A client of one server. Safe for any number of threads; no write is ever repeated.

    What concerns a Scope takes the ``Binding`` of the person it is for, and uses its Scope and its token. Every method
    takes the ``Deadline`` of its call and raises ``PowerContextCancelledError``, ``PowerContextConnectionError``,
    ``PowerContextTimeoutError``, ``PowerContextResponseError`` or ``PowerContextStatusError``.
    """

    def __init__(self, settings: PowerContextSettings) -> None:
        self._max_bytes = settings.max_bytes
        self._transport = Transport(settings.endpoint)
        weakref.finalize(self, self._transport.close)  # also when it is forgotten, or the process ends

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._transport.closed

    def close(self) -> None:
        """Refuse new calls; those under way end within their own limit. Idempotent."""
        self._transport.close()

    def prepare_context(self, binding: Binding, query: str, *, deadline: Deadline) -> str:
        """Return the text the server prepared for ``query``, unchanged; ``""`` if it has none.

        It has citations and keeps within ``max_bytes``.

        Args:
            binding: Whose memory.
            query: Not blank; cut after ``MAX_QUERY_CHARACTERS``, without its leading blanks if there are more of them;
                lone surrogates become U+FFFD.
            deadline: Of the whole call.
        """
        start = query[:MAX_QUERY_CHARACTERS]
        if not start.strip():  # a blank query is refused
            start = query.lstrip()[:MAX_QUERY_CHARACTERS]
        payload = {
            "scope_id": binding.scope_id.get_secret_value(),
            "query": _SURROGATE.sub("\ufffd", start),
            "max_bytes": self._max_bytes,
            "assembly": {"format": "markdown", "sections": [{"family": "memory", "limit": 6}]},
        }
        request = post("prepare_context", "/v1/context/prepare", binding, payload)
        reply = self._transport.exchange(request, deadline)
        prepared = PreparedContext.parse(*success(request, reply))
        if prepared.content_bytes > self._max_bytes:
            raise PowerContextResponseError(
                "the text is over the budget",
                operation=request.operation,
                request_id=reply.request_id,
            )
        return prepared.content or ""

    def remember_memory(self, binding: Binding, kind: str, text: str, *, deadline: Deadline) -> Remembered:
        """Store ``text`` as it is, once, on a connection of its own.

        An error whose ``may_have_been_sent`` is set does not say whether the server stored it: it goes on after we gave
        up. So it is with a reply about another text, kind or state (``PowerContextResponseError``).
        """
        payload = {"scope_id": binding.scope_id.get_secret_value(), "kind": kind, "text": text}
        request = post("remember_memory", "/v1/memory/remember", binding, payload, writes=True)
        reply = self._transport.exchange(request, deadline)
        remembered = Remembered.parse(*success(request, reply))
        if not remembered.is_about(kind, text):
            raise PowerContextResponseError(
                "the reply is about another memory",
                operation=request.operation,
                request_id=reply.request_id,
            )
        return remembered

    def search_memory(self, binding: Binding, query: str, *, deadline: Deadline) -> list[Hit]:
        """Return up to ``MAX_HITS`` memories that have words of ``query``, by the server's text index (mode ``fts``).

        ``query`` has at most ``MAX_QUERY_CHARACTERS``.
        """
        payload = {"scope_id": binding.scope_id.get_secret_value(), "query": query, "mode": "fts", "limit": MAX_HITS}
        request = post(
            "search_memory",
            "/v1/memory/search",
            binding,
            payload,
            max_response_bytes=MAX_SEARCH_RESPONSE_BYTES,
        )
        return SearchReply.parse(*success(request, self._transport.exchange(request, deadline))).hits

    def search_atomic_memory(
        self,
        binding: Binding,
        query: str,
        *,
        every_word_of: str | None = None,
        deadline: Deadline,
    ) -> Sequence[Hit]:
        """Return up to ``MAX_HITS`` active memories that have any word of ``query``, best first by the server's index.

        With ``every_word_of``, a kind: up to ``MAX_MATCHES`` of this kind that have every word; of two words or fewer
        the server lets one be enough. ``query`` has at most ``MAX_QUERY_CHARACTERS``. Servers before 1.3 answer 404 or
        405 without an error code.
        """
        narrow: dict[str, Any] = {"filters": {"kind": every_word_of}, "admission": {"lexical_coverage": 1}}
        wide: dict[str, Any] = {"admission": {"lexical_coverage": 0, "lexical_min_matched_terms": 1}}
        payload = {
            "query": _SURROGATE.sub("\ufffd", query),
            "mode": "text",
            "limit": MAX_MATCHES if every_word_of else MAX_HITS,
        } | (narrow if every_word_of else wide)
        path = f"/v1/scopes/{quote(binding.scope_id.get_secret_value(), safe='')}/artifacts/atomic-memory/search"
        request = post(
            "search_atomic_memory",
            path,
            binding,
            payload,
            max_response_bytes=MAX_ATOMIC_SEARCH_RESPONSE_BYTES,
        )
        return AtomicSearchReply.parse(*success(request, self._transport.exchange(request, deadline))).results

    def capture_content_source(
        self,
        binding: Binding,
        source_id: str,
        content: str,
        metadata: Mapping[str, str | int],
        *,
        deadline: Deadline,
    ) -> None:
        """Store a source that memories may be made of.

        The same once more changes nothing, and is the cure for a lost reply.

        ``content`` has 1 to 200,000 characters and is not blank. Raises ``PowerContextStatusError`` with the code
        ``source_conflict`` if the Scope has another content or metadata under ``source_id``.
        """
        payload = {
            "scope_id": binding.scope_id.get_secret_value(),
            "source_id": source_id,
            "content": content,
            "metadata": dict(metadata),
        }
        request = post("capture_content_source", "/v1/sources/content", binding, payload)
        reply = self._transport.exchange(request, deadline)
        accepted = SourceAccepted.parse(*success(request, reply, statuses=(202,)))
        if accepted.source.source_id != source_id:
            raise PowerContextResponseError(
                "the reply is about another source",
                operation=request.operation,
                request_id=reply.request_id,
            )

    def get_stats(self, binding: Binding, *, deadline: Deadline) -> Stats:
        """Return how much of the person's Scope the server has looked through for memories."""
        payload = {"selection": {"mode": "exact", "scope_ids": [binding.scope_id.get_secret_value()]}}
        request = post("get_stats", "/v1/stats", binding, payload)
        return Stats.parse(*success(request, self._transport.exchange(request, deadline)))

    def get_readiness(self, *, deadline: Deadline) -> Readiness:
        """Return what the server says of itself. It answers without a token, and also when it is not ready."""
        request = Request("get_readiness", "GET", "/health/ready", MAX_RESPONSE_BYTES)
        reply = self._transport.exchange(request, deadline)
        try:
            return Readiness.parse(*success(request, reply, statuses=(200, 503)))
        except PowerContextResponseError:
            if reply.status != 503:
                raise
        return Readiness.parse(*success(request, reply))  # a 503 that is not PowerContext's

    def get_server_info(self, binding: Binding, *, deadline: Deadline) -> ServerInfo | None:
        """Return the server's version, or ``None`` from a server before 1.3, which does not know the question."""
        request = get("get_server_info", "/v1/server-info", binding)
        reply = self._transport.exchange(request, deadline)
        return None if reply.status == 404 else ServerInfo.parse(*success(request, reply))

    def get_capabilities(self, binding: Binding, *, deadline: Deadline) -> Capabilities:
        """Return how the server can search."""
        request = get("get_capabilities", "/v1/capabilities", binding)
        return Capabilities.parse(*success(request, self._transport.exchange(request, deadline)))

    def get_scope(self, binding: Binding, *, deadline: Deadline) -> Scope:
        """Return the person's Scope, which proves that it exists and that the token may see it."""
        scope_id = binding.scope_id.get_secret_value()
        request = get("get_scope", "/v1/scopes/" + quote(scope_id, safe=""), binding)
        reply = self._transport.exchange(request, deadline)
        scope = Scope.parse(*success(request, reply))
        if scope.scope_id != scope_id:
            raise PowerContextResponseError(
                "the reply is about another Scope",
                operation=request.operation,
                request_id=reply.request_id,
            )
        return scope
