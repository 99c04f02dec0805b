"""The faults of ``deadlines.py``: those of the tests, and some on the way to the server."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import parts  # noqa: F401 - puts powercontext_support on the path
from powercontext_support.byte_server import ByteServer, Peer, Request, Script
from powercontext_support.faults import FAULTS, Fault


@dataclass(frozen=True)
class Place:
    """Where a fault is met: the URL to call, and the proxy on the way there."""

    base_url: str
    proxy_url: str | None = None


def _direct(fault: Fault) -> Callable[[], AbstractContextManager[Place]]:
    @contextmanager
    def placed() -> Iterator[Place]:
        with fault() as base_url:
            yield Place(base_url)

    return placed


def _scripted(script: Script) -> Callable[[], AbstractContextManager[Place]]:
    @contextmanager
    def placed() -> Iterator[Place]:
        with ByteServer(script) as server:
            yield Place(server.base_url)

    return placed


def _behind_proxy(script: Script) -> Callable[[], AbstractContextManager[Place]]:
    @contextmanager
    def placed() -> Iterator[Place]:
        with ByteServer(script) as proxy:
            yield Place("https://powercontext.example.com", proxy.base_url)

    return placed


def _no_answer(_request: Request, peer: Peer) -> None:
    peer.hang()


def _stalled_tunnel(_request: Request, peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    peer.hang()


def _one_byte_chunks(_request: Request, peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not peer.stopping.is_set():
        peer.send(b"1\r\n \r\n" * 10_000)  # thousands of events for h11 in each read


@contextmanager
def unread() -> Iterator[Place]:
    """A server that reads nothing. Short segments and a small window keep the buffers of both ends below 30 KB."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        yield Place(f"http://127.0.0.1:{listener.getsockname()[1]}")


ALL_FAULTS: dict[str, Callable[[], AbstractContextManager[Place]]] = {
    **{name: _direct(fault) for name, fault in FAULTS.items()},
    "endless one-byte chunks": _scripted(_one_byte_chunks),
    "proxy never answers CONNECT": _behind_proxy(_no_answer),
    "tunnel stalls in the handshake": _behind_proxy(_stalled_tunnel),
    "request never read": unread,
}

NOISY = ("endless body", "endless one-byte chunks", "endless interim replies", "64 MiB body")
"""Those that keep a core busy; nothing else should be measured meanwhile."""
