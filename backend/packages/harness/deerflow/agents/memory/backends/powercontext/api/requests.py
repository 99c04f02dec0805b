"""What every request to PowerContext has, and which replies are success."""

from __future__ import annotations

import json
from typing import Any, Final

from ..errors import (
    PowerContextAuthenticationError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextUnavailableError,
)
from ..settings.people import Binding
from ..transport.exchange import Reply, Request
from .models import ERROR_CODES, ErrorReply

# 32 KiB of text is six times that when every byte is escaped as \u00XX; the rest is the envelope.
MAX_RESPONSE_BYTES: Final = 6 * 32768 + 8192

MAX_HITS: Final = 50
"""The most hits a search returns (1.4.1 and 1.2.0)."""

# As many memories of 8192 bytes each, with six bytes for one, and their envelopes.
MAX_SEARCH_RESPONSE_BYTES: Final = MAX_HITS * (6 * 8192 + 1024)


def get(operation: str, path: str, binding: Binding, *, max_response_bytes: int = MAX_RESPONSE_BYTES) -> Request:
    """Return a question."""
    return Request(operation, "GET", path, max_response_bytes, binding.token)


def post(
    operation: str,
    path: str,
    binding: Binding,
    payload: dict[str, Any],
    *,
    max_response_bytes: int = MAX_RESPONSE_BYTES,
    writes: bool = False,
) -> Request:
    """Return a question, or a write, with a body."""
    return Request(operation, "POST", path, max_response_bytes, binding.token, _json(payload), writes=writes)


def put(operation: str, path: str, binding: Binding, payload: dict[str, Any], *, if_match: str) -> Request:
    """Return a write that holds only if the server still has what ``if_match`` names."""
    return Request(
        operation,
        "PUT",
        path,
        MAX_RESPONSE_BYTES,
        binding.token,
        _json(payload),
        if_match=if_match,
        writes=True,
    )


def _json(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def success(request: Request, reply: Reply, *, statuses: tuple[int, ...] = (200,)) -> tuple[str, bytes, str | None]:
    """Return what a model's ``parse`` needs of ``reply``.

    Raises:
        PowerContextStatusError: Its status is none of ``statuses``; the class says what an operator can do about it.
    """
    if reply.status in statuses:
        return request.operation, reply.body, reply.request_id
    code = _error_code(reply)
    kind = PowerContextStatusError
    if reply.status in (401, 403) and code is not None:
        kind = PowerContextAuthenticationError
    elif reply.status == 404 and code == "scope_not_found":
        kind = PowerContextScopeNotFoundError
    elif reply.status == 503:
        kind = PowerContextUnavailableError
    answered = f"the server answered {reply.status}" + (f" {reply.redirect}" if reply.redirect else "")
    raise kind(answered, status_code=reply.status, code=code, operation=request.operation, request_id=reply.request_id)


def _error_code(reply: Reply) -> str | None:
    try:
        code = ErrorReply.parse("", reply.body).error.code
    except PowerContextResponseError:
        return None
    return code if code in ERROR_CODES else None


def is_unknown_route(error: PowerContextError) -> bool:
    """Tell whether the server does not know the path, as one before 1.3 a newer one.

    What it says of an unknown Scope has an error code.
    """
    return isinstance(error, PowerContextStatusError) and error.status_code in (404, 405) and error.code is None
