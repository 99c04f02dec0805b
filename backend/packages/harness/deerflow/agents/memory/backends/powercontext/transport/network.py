"""Sockets under one deadline: the layer below httpcore's connections.

httpcore hands the ``timeout`` of each phase down to the socket. Here that number is not a duration but the exchange's
deadline, a point on ``time.monotonic()``: every look-up, connect, handshake, write and read gets only the time that is
left, so a peer that drips bytes gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any, Final

import httpcore

from . import causes
from .names import NameLookupError, Names

# httpcore takes apart all that one read returned before it looks at the deadline again; 64 KiB of one-byte chunks take
# it 0.2 s.
_READ_BYTES: Final = 4096


class HandshakeError(httpcore.ConnectError):
    """TLS failed; the text is one of ``causes``."""


class ForeignProtocolError(httpcore.RemoteProtocolError):
    """What answers speaks no HTTP; the text is one of ``causes``."""


def time_left(deadline: float | None, expired: type[httpcore.TimeoutException]) -> float | None:
    """Return the seconds until ``deadline``, or raise ``expired`` if there are none."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise expired
    return left


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class StaleConnectionError(httpcore.ReadError):
    """A connection that was used before closed without a byte of the reply: the server had most likely given it up."""


class DeadlineStream(httpcore.NetworkStream):
    """A connected socket whose operations end at the deadline given as ``timeout``. It counts what a reply is made of.

    Attributes:
        head_bytes: The length of the reply's head, 0 until its end was read.
        received_bytes: All that was read since the last write.
        reused: Whether an earlier request was answered on it.
    """

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._head = bytearray()
        self.head_bytes = 0
        self.received_bytes = 0
        self.reused = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what has arrived; ``httpcore.ReadTimeout`` after the deadline."""
        left = time_left(timeout, httpcore.ReadTimeout)
        try:
            data = self._stream.read(min(max_bytes, _READ_BYTES), left)
        except httpcore.ReadError:
            raise self._broken(httpcore.ReadError) from None
        if not data and self._is_stale():
            raise StaleConnectionError
        if not self.received_bytes and data and (cause := causes.of_opening(data)):
            raise ForeignProtocolError(cause)
        self.received_bytes += len(data)
        if not self.head_bytes:
            self._head += data
            self.head_bytes = self._head.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in self._head else 0
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of ``buffer``; ``httpcore.WriteTimeout`` after the deadline."""
        self.reused = self.reused or self.received_bytes > 0
        self._head.clear()
        self.head_bytes = self.received_bytes = 0
        # httpcore's own stream would grant the whole limit again to each send of a buffer that goes out in pieces.
        connection: socket.socket = self._stream.get_extra_info("socket")
        rest = memoryview(buffer)
        while rest:
            left = time_left(timeout, httpcore.WriteTimeout)
            try:
                connection.settimeout(left)
                sent = connection.send(rest)
            except TimeoutError:
                raise httpcore.WriteTimeout from None
            except OSError:
                raise self._broken(httpcore.WriteError) from None
            rest = rest[sent:]

    def _is_stale(self) -> bool:
        return self.reused and not self.received_bytes

    def _broken(self, kind: type[httpcore.NetworkError]) -> httpcore.NetworkError:
        return StaleConnectionError() if self._is_stale() else kind()

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> DeadlineStream:
        """Shake hands; ``HandshakeError`` if that fails, ``httpcore.ConnectTimeout`` after the deadline.

        Either closes the socket.
        """
        try:
            left = time_left(timeout, httpcore.ConnectTimeout)
        except httpcore.ConnectTimeout:
            self.close()  # nobody else will
            raise
        try:
            return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left))
        except httpcore.ConnectError as error:
            raise HandshakeError(causes.of_failed_handshake(error.__cause__)) from None

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore knows of the socket."""
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections within the deadline given as ``timeout``."""

    def __init__(self) -> None:
        self._sockets = httpcore.SyncBackend()
        self._names = Names()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of ``host`` that answers; the one that did last is asked first.

        Raises:
            NameLookupError: ``host`` has no address.
            httpcore.ConnectError: No address answers.
            httpcore.ConnectTimeout: The deadline passed.
        """
        addresses = [host]
        if not _is_address(host):
            addresses = self._names.addresses_of(host, port, time_left(timeout, httpcore.ConnectTimeout))
        for position, address in enumerate(addresses, start=1):
            left = time_left(timeout, httpcore.ConnectTimeout)
            # An address that does not answer must not use up the time of those behind it.
            share = None if left is None else left / (len(addresses) - position + 1)
            try:
                stream = self._sockets.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if position == len(addresses):
                    self._names.forget(host, port)
                    raise
            else:
                self._names.answered(host, port, address)
                return DeadlineStream(stream)
        raise NameLookupError
