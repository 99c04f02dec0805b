"""The one place where httpcore's exceptions become ours."""

from __future__ import annotations

from typing import Final

import httpcore

from ..errors import (
    BROKEN,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextTimeoutError,
)
from .names import NameLookupError, NameLookupTimeout
from .network import ForeignProtocolError, HandshakeError

_PROXY: Final = "check HTTPS_PROXY or ALL_PROXY, or list the server's host in NO_PROXY"


class BodyTooLargeError(Exception):
    """The reply's body is longer than anything legitimate."""


def translate(error: Exception, operation: str, sent: bool, proxied: bool) -> PowerContextError:
    """Return our error for what httpcore raised.

    Args:
        error: What it raised; it quotes the peer.
        operation: PowerContext's operation.
        sent: Whether the server may have received the request.
        proxied: Whether there is a proxy on the way.
    """
    if isinstance(error, NameLookupTimeout):
        reason = "the look-up of the proxy's name took too long" if proxied else "the look-up of the server's name took too long"
        return PowerContextTimeoutError(
            f"{reason}: check the name servers of this machine",
            operation=operation,
            may_have_been_sent=False,
        )
    if isinstance(error, httpcore.TimeoutException):
        reason = "no complete reply within the limit" if sent else "no connection within the limit"
        if proxied and not sent:
            reason = f"no connection by way of the proxy within the limit: {_PROXY}"
        return PowerContextTimeoutError(reason, operation=operation, may_have_been_sent=sent)
    if isinstance(error, BodyTooLargeError):
        return PowerContextResponseError("the reply is too large", operation=operation)
    if sent:
        reason = str(error) if isinstance(error, ForeignProtocolError) else BROKEN
        return PowerContextResponseError(reason, operation=operation)
    return PowerContextConnectionError(_why_not_connected(error, proxied), operation=operation)


def _why_not_connected(error: Exception, proxied: bool) -> str:
    if isinstance(error, NameLookupError):
        if proxied:
            return f"the proxy's name has no address: {_PROXY}"
        return "the server's name has no address: check the host in POWERCONTEXT_DEERFLOW_BASE_URL, and the name servers of this machine"
    if isinstance(error, HandshakeError):
        return str(error)
    if isinstance(error, httpcore.ProxyError):
        if str(error).startswith("407"):
            return "the proxy wants a user name and a password: put them into HTTPS_PROXY or ALL_PROXY, as in http://user:password@proxy:3128"
        return f"the proxy refuses the connection: {_PROXY}, or see the proxy's log"
    if not proxied:
        return "nothing answers at the server's address"
    if isinstance(error, httpcore.ConnectError):
        return f"nothing answers at the proxy's address: {_PROXY}"
    return f"what answers at the proxy's address is no http proxy: {_PROXY}"
