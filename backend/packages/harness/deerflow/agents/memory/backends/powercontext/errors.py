"""Every error of this backend. No message carries a URL, a Scope, a token, the request or a word of the server's reply.

Whether the server may have received the request belongs to the class of an error: it is what "not saved" rests on, so
nobody can forget to say it. To keep a foreign exception, whose text may quote the peer, out of the chain, our code
leaves the ``except`` block before it raises.
"""

from __future__ import annotations

from typing import Any, Final

BROKEN: Final = "the connection broke before a complete reply"
BY_HTTPS: Final = "and leads to this host by https"


class PowerContextError(Exception):
    """Root of all errors of this backend.

    Attributes:
        operation: PowerContext's operation, for example ``prepare_context``; ``None`` outside an exchange.
        may_have_been_sent: Whether the server may have received the request. ``False`` proves that nothing happened
            there.
        request_id: The server's id of the request, 16 hex digits, or ``None``.
    """

    may_have_been_sent = True

    def __init__(self, message: str, *, operation: str | None = None, request_id: str | None = None) -> None:
        super().__init__(message)
        self.operation = operation
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from their message alone, and some of ours need more.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[PowerContextError], args: tuple[Any, ...]) -> PowerContextError:
    return kind.__new__(kind, *args)


class PowerContextConfigurationError(PowerContextError):
    """The settings are wrong; the message names each setting and how to correct it, never a value."""

    may_have_been_sent = False


class PowerContextCancelledError(PowerContextError):
    """The caller cancelled, or the process shuts down: no new request begins. This one was never sent."""

    may_have_been_sent = False


class PowerContextBusyError(PowerContextError):
    """Too many calls at a time: none of our threads came free for this one. It was never sent."""

    may_have_been_sent = False


class PowerContextOutboxError(PowerContextError):
    """The outbox of capture cannot be used; the message says why and what to do. Nothing was queued.

    Attributes:
        lasting: Whether trying again is useless until somebody has seen to it.
    """

    may_have_been_sent = False

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class PowerContextConnectionError(PowerContextError):
    """No connection: name, connect, proxy or TLS. The request was never sent."""

    may_have_been_sent = False


class PowerContextTimeoutError(PowerContextError):
    """The total deadline passed. Not a builtin ``TimeoutError``, which the host would swallow."""

    def __init__(self, message: str, *, may_have_been_sent: bool, operation: str | None = None) -> None:
        super().__init__(message, operation=operation)
        self.may_have_been_sent = may_have_been_sent


class PowerContextResponseError(PowerContextError):
    """The connection broke after it stood, or the reply was cut, too large or not what PowerContext's contract says."""


class PowerContextStatusError(PowerContextError):
    """The server answered, but not with success.

    Attributes:
        status_code: The HTTP status.
        code: The error code, if the reply is PowerContext's own error envelope and the code is one of
            ``models.ERROR_CODES``; ``None`` if something else on the way may have answered.
    """

    def __init__(self, message: str, *, status_code: int, code: str | None, **details: Any) -> None:
        super().__init__(message, **details)
        self.status_code = status_code
        self.code = code


class PowerContextAuthenticationError(PowerContextStatusError):
    """PowerContext's own 401 or 403: it refuses the token, or the token may not use the Scope."""


class PowerContextScopeNotFoundError(PowerContextStatusError):
    """404 ``scope_not_found``: this server has no such Scope."""


class PowerContextUnavailableError(PowerContextStatusError):
    """503: the server is starting, overloaded or waiting for its database."""
