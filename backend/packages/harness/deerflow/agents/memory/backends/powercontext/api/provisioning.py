"""What an operator's command asks of PowerContext: a Scope for a person, and that the person's own token may use it.

Nothing that serves DeerFlow's users comes here: ``bind.py`` alone creates Scopes, and only when told.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field, SecretStr

from ..deadline import Deadline
from ..errors import PowerContextAuthenticationError
from ..settings.people import Binding
from ..transport.exchange import Request, Transport
from .models import Response, Scope
from .requests import MAX_RESPONSE_BYTES, get, success

ROLE = "scope.contributor"
"""Reads a Scope's memories and adds to them (1.4.1)."""


class _Principal(Response):
    type: Literal["user", "service"]
    id: str = Field(repr=False)


class _Me(Response):
    principal: _Principal


class _Granted(Response):
    role: str


def create_scope(transport: Transport, token: SecretStr | None, user_id: str, deadline: Deadline) -> str:
    """Return the id of the Scope that is this person's, created if it is not there.

    The idempotency key comes from the hash of ``user_id``, so the same person gets the same Scope however often this is
    asked, and the server never sees the id.

    Raises:
        PowerContextError: The server did not say that it is there. Asking again is safe.
    """
    key = hashlib.sha256(f"powercontext-for-deerflow:{user_id}".encode()).hexdigest()
    body = {
        "title": f"DeerFlow memory {key[:8]}",
        "summary": "What DeerFlow recalls for one person",
        "idempotency_key": f"deerflow-{key}",
    }
    request = _write("create_scope", "/v1/scopes", token, body)
    return Scope.parse(*success(request, transport.exchange(request, deadline), statuses=(200, 201))).scope_id


def check_use(transport: Transport, binding: Binding, deadline: Deadline, *, granted_by: SecretStr | None) -> None:
    """Check that the binding's token may use its Scope.

    Args:
        transport: The way to the server.
        binding: Whom to check.
        deadline: Of everything.
        granted_by: An administrator's token, which grants the use if it is missing; ``None``: nothing is granted.

    Raises:
        PowerContextError: There is no such Scope, or a token is refused.
    """
    scope_id = binding.scope_id.get_secret_value()
    request = get("get_scope", "/v1/scopes/" + quote(scope_id, safe=""), binding)
    try:
        success(request, transport.exchange(request, deadline))
        return
    except PowerContextAuthenticationError as error:
        if error.status_code != 403 or granted_by is None:
            raise
    who = get("get_access_principal", "/v1/access/me", binding)
    principal = _Me.parse(*success(who, transport.exchange(who, deadline))).principal
    key = hashlib.sha256(json.dumps([principal.type, principal.id, scope_id, ROLE]).encode()).hexdigest()
    body = {
        "subject": {"type": principal.type, "id": principal.id},
        "resource": {"type": "scope", "scope_id": scope_id},
        "role": ROLE,
        "idempotency_key": f"deerflow-{key}",
    }
    grant = _write("create_access_binding", "/v1/access/bindings/create", granted_by, body)
    _Granted.parse(*success(grant, transport.exchange(grant, deadline), statuses=(200, 201)))
    success(request, transport.exchange(request, deadline))


def _write(operation: str, path: str, token: SecretStr | None, body: dict[str, Any]) -> Request:
    return Request(operation, "POST", path, MAX_RESPONSE_BYTES, token, json.dumps(body).encode(), writes=True)
