"""PowerContext's HTTP API as we use it: a short method per operation, named after its operationId."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import quote

from .config import PowerContextSettings
from .errors import (
    PowerContextAuthenticationError,
    PowerContextResponseError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextUnavailableError,
)
from .models import ERROR_CODES, MAX_QUERY_CHARACTERS, Capabilities, ErrorReply, Hit, PreparedContext, Readiness, Remembered, Scope, SearchReply, ServerInfo
from .transport.exchange import Reply, Transport

# 32 KiB of text is six times that when every byte is escaped as \u00XX; the rest is the envelope.
MAX_RESPONSE_BYTES: Final = 6 * 32768 + 8192

MAX_HITS: Final = 50
"""The most hits a search returns (1.4.1 and 1.2.0)."""

# As many memories of 8192 bytes each, with six bytes for one, and their envelopes.
MAX_SEARCH_RESPONSE_BYTES: Final = MAX_HITS * (6 * 8192 + 1024)

_SURROGATE = re.compile("[\ud800-\udfff]")


class PowerContextClient:
    """A client of one server and one Scope. Safe for any number of threads; nothing is retried.

    Every method takes ``timeout_seconds``, the limit of the whole call. Every method raises
    ``PowerContextConnectionError``, ``PowerContextTimeoutError``, ``PowerContextResponseError`` or
    ``PowerContextStatusError``.

    Raises:
        PowerContextConfigurationError: ``SSL_CERT_FILE`` or ``SSL_CERT_DIR`` cannot be read.
    """

    def __init__(self, settings: PowerContextSettings) -> None:
        self._settings = settings
        self._transport = Transport(settings)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._transport.closed

    def close(self) -> None:
        """Refuse new calls; those under way end within their own limit. Idempotent."""
        self._transport.close()

    def prepare_context(self, query: str, *, timeout_seconds: float) -> str:
        """Return the text the server prepared for ``query``, with citations and within ``max_bytes``, unchanged; ``""`` if it has none.

        Args:
            query: Not blank; cut after ``MAX_QUERY_CHARACTERS``, without its leading blanks if there are more of them; lone
                surrogates become U+FFFD.
            timeout_seconds: The limit of the whole call.
        """
        operation = "prepare_context"
        start = query[:MAX_QUERY_CHARACTERS]
        if not start.strip():  # a blank query is refused
            start = query.lstrip()[:MAX_QUERY_CHARACTERS]
        payload = {
            "scope_id": self._settings.scope_id.get_secret_value(),
            "query": _SURROGATE.sub("\ufffd", start),
            "max_bytes": self._settings.max_bytes,
            "assembly": {"format": "markdown", "sections": [{"family": "memory", "limit": 6}]},
        }
        reply = self._call(operation, "/v1/context/prepare", payload, timeout_seconds=timeout_seconds)
        prepared = PreparedContext.parse(operation, _success(operation, reply))
        if prepared.content_bytes > self._settings.max_bytes:
            raise PowerContextResponseError("the text is over the budget", operation=operation, may_have_been_sent=True, request_id=reply.request_id)
        return prepared.content or ""

    def remember_memory(self, kind: str, text: str, *, timeout_seconds: float) -> Remembered:
        """Store ``text`` as it is, once, on a connection of its own.

        An error whose ``may_have_been_sent`` is set does not say whether the server stored it: it goes on after we gave
        up.
        """
        payload = {"scope_id": self._settings.scope_id.get_secret_value(), "kind": kind, "text": text}
        reply = self._call("remember_memory", "/v1/memory/remember", payload, timeout_seconds=timeout_seconds, own_connection=True)
        return Remembered.parse("remember_memory", _success("remember_memory", reply))

    def search_memory(self, query: str, *, timeout_seconds: float) -> list[Hit]:
        """Return up to ``MAX_HITS`` memories that have words of ``query``, by the server's text index (mode ``fts``).

        ``query`` has at most ``MAX_QUERY_CHARACTERS``.
        """
        scope_id = self._settings.scope_id.get_secret_value()
        payload = {"scope_id": scope_id, "query": query, "mode": "fts", "limit": MAX_HITS}
        reply = self._call("search_memory", "/v1/memory/search", payload, timeout_seconds=timeout_seconds, max_response_bytes=MAX_SEARCH_RESPONSE_BYTES)
        return SearchReply.parse("search_memory", _success("search_memory", reply)).hits

    def get_readiness(self, *, timeout_seconds: float) -> Readiness:
        """Return what the server says of itself. It answers without a token, and also when it is not ready."""
        reply = self._call("get_readiness", "/health/ready", timeout_seconds=timeout_seconds)
        if reply.status != 503:
            _success("get_readiness", reply)
        return Readiness.parse("get_readiness", reply)

    def get_server_info(self, *, timeout_seconds: float) -> ServerInfo | None:
        """Return the server's version, or ``None`` from a server before 1.3, which does not know the question."""
        reply = self._call("get_server_info", "/v1/server-info", timeout_seconds=timeout_seconds)
        return None if reply.status == 404 else ServerInfo.parse("get_server_info", _success("get_server_info", reply))

    def get_capabilities(self, *, timeout_seconds: float) -> Capabilities:
        """Return how the server can search."""
        reply = self._call("get_capabilities", "/v1/capabilities", timeout_seconds=timeout_seconds)
        return Capabilities.parse("get_capabilities", _success("get_capabilities", reply))

    def get_scope(self, *, timeout_seconds: float) -> Scope:
        """Return the configured Scope, which proves that it exists and that the token may see it."""
        path = "/v1/scopes/" + quote(self._settings.scope_id.get_secret_value(), safe="")
        reply = self._call("get_scope", path, timeout_seconds=timeout_seconds)
        scope = Scope.parse("get_scope", _success("get_scope", reply))
        if scope.scope_id != self._settings.scope_id.get_secret_value():
            raise PowerContextResponseError("the reply is about another Scope", operation="get_scope", may_have_been_sent=True, request_id=reply.request_id)
        return scope

    def _call(
        self,
        operation: str,
        path: str,
        payload: dict[str, Any] | None = None,
        *,
        timeout_seconds: float,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        own_connection: bool = False,
    ) -> Reply:
        content = None if payload is None else json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        return self._transport.exchange(
            operation,
            path,
            content,
            timeout_seconds=timeout_seconds,
            max_response_bytes=max_response_bytes,
            own_connection=own_connection,
        )


def _success(operation: str, reply: Reply) -> Reply:
    """Return ``reply`` if it is a 200.

    Raises:
        PowerContextStatusError: It is not; the class says what an operator can do about it.
    """
    if reply.status == 200:
        return reply
    code = _error_code(reply)
    kind = PowerContextStatusError
    if reply.status in (401, 403):
        kind = PowerContextAuthenticationError
    elif reply.status == 404 and code == "scope_not_found":
        kind = PowerContextScopeNotFoundError
    elif reply.status == 503:
        kind = PowerContextUnavailableError
    raise kind(
        f"the server answered {reply.status}",
        status_code=reply.status,
        code=code,
        operation=operation,
        may_have_been_sent=True,
        request_id=reply.request_id,
    )


def _error_code(reply: Reply) -> str | None:
    try:
        code = ErrorReply.parse("", reply).error.code
    except PowerContextResponseError:
        return None
    return code if code in ERROR_CODES else None
