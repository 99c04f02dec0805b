"""Every error of this backend. No message carries a URL, a Scope, a token, the request or a word of the server's reply."""

from __future__ import annotations

from typing import Any


class PowerContextError(Exception):
    """Root of all errors of this backend.

    Attributes:
        operation: PowerContext's operation, for example ``prepare_context``; ``None`` outside an exchange.
        may_have_been_sent: Whether the server may have received the request. ``False`` proves that nothing happened
            there.
        request_id: The server's id of the request, 16 hex digits, or ``None``.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        may_have_been_sent: bool = False,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.may_have_been_sent = may_have_been_sent
        self.request_id = request_id


class PowerContextConfigurationError(PowerContextError):
    """The settings are wrong, or the client was closed; the message names each setting and how to mend it, never a value."""


class PowerContextConnectionError(PowerContextError):
    """No connection: name, connect, proxy or TLS. The request was never sent."""


class PowerContextTimeoutError(PowerContextError):
    """The total deadline passed. Not a builtin ``TimeoutError``, which the host would swallow."""


class PowerContextResponseError(PowerContextError):
    """The connection broke after it stood, or the reply was cut, too large or not what PowerContext's contract says."""


class PowerContextStatusError(PowerContextError):
    """The server answered, but not with success.

    Attributes:
        status_code: The HTTP status.
        code: PowerContext's error code if it is one of ``models.ERROR_CODES``, else ``None``.
    """

    def __init__(self, message: str, *, status_code: int = 0, code: str | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.status_code = status_code
        self.code = code


class PowerContextAuthenticationError(PowerContextStatusError):
    """401 or 403: the token is refused, or may not use the Scope."""


class PowerContextScopeNotFoundError(PowerContextStatusError):
    """404 ``scope_not_found``: this server has no such Scope."""


class PowerContextUnavailableError(PowerContextStatusError):
    """503: the server is starting, overloaded or waiting for its database."""
