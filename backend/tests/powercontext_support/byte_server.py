"""A TCP server on loopback, for what no HTTP server can be made to do: single bytes, their timing, and when a connection closes.

For a reply, a status, a header, a count or TLS there is ``http_server``.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from .replies import Reply


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body's JSON."""
        return json.loads(self.body)


@dataclass
class Peer:
    """The connection a script speaks on."""

    connection: socket.socket
    stopping: threading.Event

    def send(self, data: bytes) -> None:
        """Send ``data``."""
        self.connection.sendall(data)

    def drip(self, data: bytes, *, seconds_between: float) -> None:
        """Send ``data`` byte by byte."""
        for byte in data:
            self.send(bytes([byte]))
            if self.stopping.wait(seconds_between):
                return

    def hang(self) -> None:
        """Do nothing until the server stops."""
        self.stopping.wait()


Script = Callable[[Request, Peer], bytes | Reply | None]
"""Returns what to answer with on a connection that stays open, or ``None`` to close it."""


def always(answer: bytes | Reply) -> Script:
    """Return a script that gives every request the same answer."""
    return lambda request, peer: answer


@dataclass
class ByteServer:
    """Runs ``script`` for every request on every connection, and keeps the requests.

    Attributes:
        script: Answers the requests.
        opening: What is done to a connection before its first request, for example a handshake; returns what to go on with.
    """

    script: Script
    opening: Callable[[socket.socket], socket.socket] = lambda connection: connection
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _open: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self.base_url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End all connections and accept none. Idempotent."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)  # close() alone leaves it to the thread that reads from it
            connection.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self.opening(connection)
            self._open.append(connection)
            with connection, connection.makefile("rb") as stream:
                while request := _read_request(stream):
                    self.requests.append(request)
                    answer = self.script(request, Peer(connection, self._stopping))
                    if answer is None:
                        return
                    connection.sendall(answer.raw() if isinstance(answer, Reply) else answer)
        except (OSError, ValueError):  # the client went away, or the server is stopping
            return


def _read_request(stream: Any) -> Request | None:
    first = stream.readline().decode("ascii").split()
    if len(first) < 2:
        return None
    headers: dict[str, str] = {}
    while (line := stream.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Request(first[0], first[1], headers, stream.read(int(headers.get("content-length", 0))))
