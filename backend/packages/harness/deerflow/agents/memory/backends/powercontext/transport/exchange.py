"""One HTTP exchange under one total deadline.

httpx's time-outs start anew with every byte, so a slow peer can hold a call for as long as it likes. This module works
one layer below, on httpcore's connections over ``network.DeadlineBackend``. ``translating`` is where httpcore's
exceptions become ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpcore
import httpx
from pydantic import SecretStr

from ..deadline import Deadline
from ..errors import BROKEN, PowerContextCancelledError, PowerContextError, PowerContextResponseError
from . import causes
from .connections import Connections
from .endpoint import Endpoint
from .network import DeadlineStream, StaleConnectionError
from .quiet import quiet
from .translating import BodyTooLargeError, translate

_REQUEST_ID = re.compile(rb"[0-9a-f]{16}")
_VISIBLE = re.compile(rb"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class Request:
    """What to send, once.

    Attributes:
        operation: PowerContext's operationId, for errors.
        method: GET, POST or PUT.
        path: Below the base URL, percent-encoded.
        max_response_bytes: A longer body is an error, and is not read to its end.
        token: The bearer token, if one is needed.
        content: JSON to send.
        if_match: The ``If-Match`` header, if there is to be one.
        writes: A write gets a connection of its own, so that none is used which the server may be closing.
    """

    operation: str
    method: str
    path: str = field(repr=False)
    max_response_bytes: int
    token: SecretStr | None = None
    content: bytes | None = field(default=None, repr=False)
    if_match: str | None = None
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply, whatever its status.

    Attributes:
        status: The HTTP status.
        body: The body.
        request_id: The server's id of the request.
        redirect: Where a redirect leads, in our words; it is not followed.
    """

    status: int
    body: bytes = field(repr=False)
    request_id: str | None
    redirect: str | None = None


class Transport:
    """Carries requests to the one configured server. Safe for any number of threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        url = endpoint.url
        self._origin = (url.raw_scheme, url.raw_host, url.port)
        self._path = url.raw_path.rstrip(b"/")
        self._headers = [
            (b"Host", url.netloc),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
            (b"User-Agent", b"deerflow-powercontext"),
        ]
        self._proxied = endpoint.proxy is not None
        self._connections = Connections(endpoint)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._connections.closed

    def close(self) -> None:
        """Refuse new exchanges; those under way end within their own deadline. Idempotent."""
        self._connections.close()

    def exchange(self, request: Request, deadline: Deadline) -> Reply:
        """Send ``request`` and return the complete reply. No redirect is followed.

        A write is sent once. A question that met a reused connection which closed without a byte of the reply is asked
        again, once, on a new one: nothing is lost by that, and a server or proxy may close a connection at any moment.

        Args:
            request: What to send.
            deadline: For all of it: waiting for a connection, name, connect, TLS, request and reply.

        Raises:
            PowerContextCancelledError: The call was cancelled, the client closed, or the process is ending; checked
                before anything else, so that none of them lets a new step begin.
            PowerContextConnectionError: There was no connection.
            PowerContextTimeoutError: The deadline passed.
            PowerContextResponseError: The reply was cut, too large or not HTTP.
        """
        for fresh in (request.writes, True):
            if self.closed or deadline.cancelled:
                raise PowerContextCancelledError("cancelled before it was sent", operation=request.operation)
            reply = self._attempt(request, deadline, fresh=fresh)
            if reply is not None:
                return reply
        raise PowerContextResponseError(BROKEN, operation=request.operation)

    def _attempt(self, request: Request, deadline: Deadline, *, fresh: bool) -> Reply | None:
        """Send ``request``, on a connection of its own if ``fresh``.

        ``None`` if it met one that was used before and had closed.
        """
        body = _RequestBody(request, deadline)
        failure: PowerContextError
        try:
            with quiet:
                connection = self._connections.acquire(deadline)
                try:
                    if fresh:
                        connection.close()
                    return _send(connection, self._message(request, body), request)
                finally:
                    self._connections.release(connection)
        except StaleConnectionError:
            return None
        except (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.ProxyError,
            BodyTooLargeError,
        ) as error:
            failure = translate(error, request.operation, body.taken, self._proxied)
        raise failure  # out here, so that httpcore's exception, which quotes the peer, does not hang on to it

    def _message(self, request: Request, body: _RequestBody) -> httpcore.Request:
        scheme, host, port = self._origin
        headers = list(self._headers)
        if request.token is not None:
            headers.append((b"Authorization", b"Bearer " + request.token.get_secret_value().encode("ascii")))
        if request.if_match is not None:
            headers.append((b"If-Match", request.if_match.encode("ascii")))
        if request.content is not None:
            headers += [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(request.content))]
        return httpcore.Request(
            method=request.method.encode("ascii"),
            url=httpcore.URL(scheme=scheme, host=host, port=port, target=self._path + request.path.encode("ascii")),
            headers=headers,
            content=body,
            extensions={"timeout": body.timeouts},
        )


class _RequestBody:
    """The body to send, and what httpcore's asking for it means.

    There is a connection then, and the server may get the request.

    Attributes:
        taken: Whether httpcore asked for it. Until then the server has no request it could act on.
        timeouts: httpcore hands the first three down to the sockets, to which they are a point in time; the fourth it
            keeps to itself.
    """

    def __init__(self, request: Request, deadline: Deadline) -> None:
        self._request = request
        self._deadline = deadline
        self.taken = False
        self.timeouts = {"connect": deadline.at, "write": deadline.at, "read": deadline.at, "pool": 0.0}

    def __iter__(self) -> Iterator[bytes]:
        self.taken = True
        self.timeouts["read"] = self._deadline.reply_by()
        if self._request.writes:
            self._deadline.write_begins()
        yield self._request.content or b""


def _send(connection: httpcore.ConnectionPool, message: httpcore.Request, request: Request) -> Reply:
    reusable = False
    try:
        response = connection.handle_request(message)
        try:
            body = _read_body(response, request.max_response_bytes)
        finally:
            response.close()
        # After a 500 the server closes the connection without saying so.
        reusable = not request.writes and response.status < 500 and _ends_with(response, body)
        return Reply(
            response.status,
            body,
            _header(response, b"x-powercontext-request-id", _REQUEST_ID),
            _redirect(response, message.url),
        )
    finally:
        if not reusable:
            # also what httpcore left half open: a tunnel whose handshake failed would block the next request
            connection.close()


def _ends_with(response: httpcore.Response, body: bytes) -> bool:
    """Tell whether the bytes read end with ``body``.

    What comes behind it would be taken for the answer to the next request.
    """
    stream = response.extensions["network_stream"]
    return isinstance(stream, DeadlineStream) and stream.head_bytes + len(body) == stream.received_bytes


def _read_body(response: httpcore.Response, limit: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLargeError
    return bytes(body)


def _header(response: httpcore.Response, name: bytes, pattern: re.Pattern[bytes]) -> str | None:
    for key, value in response.headers:
        if key.lower() == name and pattern.fullmatch(value):
            return value.decode("ascii")
    return None


def _redirect(response: httpcore.Response, url: httpcore.URL) -> str | None:
    if not 300 <= response.status < 400:
        return None
    return causes.of_redirect(httpx.URL(bytes(url).decode("ascii")), _header(response, b"location", _VISIBLE) or "")
