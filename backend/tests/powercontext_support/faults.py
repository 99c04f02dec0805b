"""Everything a server, or the way to it, has been seen doing wrong, each as a context that yields the base URL to call.

What is a whole reply is one of ``REPLIES``, what is not is one of ``SCRIPTS``; ``FAULTS`` has both, and the ways that lead nowhere.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from .byte_server import ByteServer, Peer, Request, Script, always
from .replies import Reply, answer, error, prepared

Fault = Callable[[], AbstractContextManager[str]]

_READY = json.dumps(prepared("Refund amounts are integer cents.")).encode()
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _silent(request: Request, peer: Peer) -> None:
    peer.hang()


def _dripped_headers(request: Request, peer: Peer) -> None:
    peer.drip(_HEAD + b"X-Padding: " + b"a" * 1000, seconds_between=0.05)


def _dripped_body(request: Request, peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: %d\r\n\r\n" % len(_READY))
    peer.drip(_READY, seconds_between=0.05)


def _endless_body(request: Request, peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not peer.stopping.is_set():
        peer.send(b"400\r\n" + b" " * 1024 + b"\r\n")


def _endless_interim_replies(request: Request, peer: Peer) -> None:
    while not peer.stopping.is_set():
        peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")


def _huge_body(request: Request, peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: %d\r\n\r\n" % (64 * 1024 * 1024))
    for _ in range(64):
        peer.send(b" " * 1024 * 1024)


def _cut(request: Request, peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: %d\r\n\r\n" % len(_READY) + _READY[:40])


def _reset(request: Request, peer: Peer) -> None:
    peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _closed_after_request(request: Request, peer: Peer) -> None:
    return None


SCRIPTS: dict[str, Script] = {
    "silent": _silent,
    "dripped headers": _dripped_headers,
    "dripped body": _dripped_body,
    "endless body": _endless_body,
    "endless interim replies": _endless_interim_replies,
    "64 MiB body": _huge_body,
    "garbage": always(b"\x00\xff\x13\x37 this is no HTTP\r\n\r\n" * 20),
    "cut": _cut,
    "reset": _reset,
    "closed after request": _closed_after_request,
}

REPLIES: dict[str, Reply] = {
    "redirect": Reply(307, b"", {"Location": "/v1/context/prepare"}),
    "gzip": Reply(200, gzip.compress(_READY), {"Content-Encoding": "gzip"}),
    "bad UTF-8": Reply(200, _READY.replace(b"Refund", b"Ref\xffnd")),
    "lone surrogate": Reply(200, _READY.replace(b"Refund", rb"Ref\ud800")),
    "not JSON": Reply(200, b"<html>Welcome</html>"),
    "deep JSON": Reply(200, b"[" * 100_000),
    "array": answer([prepared("x")]),
    "wrong schema": answer(prepared("x", schema="powercontext.prepared-context.v2")),
    "wrong type": answer(prepared("x") | {"content": ["x"]}),
    "unknown status": answer(prepared("x", status="partial")),
    "ready without text": answer(prepared(None, status="ready")),
    "over budget": answer(prepared("x" * 8001)),
    "wrong byte count": answer(prepared("退款", content_bytes=2)),
    "401": error(401, "unauthorized"),
    "403": error(403, "forbidden"),
    "404 no such Scope": error(404, "scope_not_found"),
    "404 no such route": answer({"detail": "Not Found"}, 404),
    "422": error(422, "invalid_request"),
    "429": error(429, "capacity_exceeded"),
    "500": error(500, "internal_error"),
    "502": Reply(502, b"<html>Bad Gateway</html>"),
    "503": error(503, "server_overloaded"),
}


def _scripted(script: Script) -> Fault:
    @contextmanager
    def fault() -> Iterator[str]:
        with ByteServer(script) as server:
            yield server.base_url

    return fault


def answering(*replies: Reply) -> Fault:
    """Return the fault of a server that answers every request with ``replies`` in turn, with the last one from then on."""

    @contextmanager
    def fault() -> Iterator[str]:
        pytest.importorskip("pytest_httpserver")
        from .http_server import HTTPPowerContext

        with HTTPPowerContext() as server:
            server.answer(None, *replies)
            yield server.base_url

    return fault


@contextmanager
def _refused() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def _black_hole() -> Iterator[str]:
    """A port whose queue of unaccepted connections is full: Linux drops what else comes."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for filler in fillers:
            filler.close()


@contextmanager
def hung_name_lookup() -> Iterator[str]:
    """Let every name look-up of this process hang; numbers still resolve."""
    original, released = socket.getaddrinfo, threading.Event()

    def hang(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "localhost":
            released.wait()
        return original(host, *arguments, **options)

    socket.getaddrinfo = hang
    try:
        yield "http://localhost:9"
    finally:
        socket.getaddrinfo = original
        released.set()


@contextmanager
def _stalled_handshake() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


FAULTS: dict[str, Fault] = {
    **{name: _scripted(script) for name, script in SCRIPTS.items()},
    **{name: answering(reply) for name, reply in REPLIES.items()},
    "refused": _refused,
    "black-holed connect": _black_hole,
    "hung name look-up": hung_name_lookup,
    "stalled TLS handshake": _stalled_handshake,
}

UNENDING = {
    "silent", "dripped headers", "dripped body", "endless body", "endless interim replies",
    "black-holed connect", "hung name look-up", "stalled TLS handshake",
}  # fmt: skip
"""Those that only the caller's own limit ends."""
