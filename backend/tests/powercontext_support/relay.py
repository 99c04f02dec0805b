"""A relay before a real server that can lose, cut, spoil or delay what passes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

import httpx

from .byte_server import ByteServer, Peer, Request
from .replies import REQUEST_ID, Reply


@dataclass(frozen=True)
class Passage:
    """What happens to one request and its reply.

    Attributes:
        request: Whether the request reaches the server at all.
        reply_bytes: How much of the reply comes back, ``None`` for all of it.
        delay_seconds: How long the reply is held back.
        spoil: Whether a byte of the reply's body is changed.
        instead: What comes back without the server being asked; ``None`` for the server's reply.
        lie: What comes back though the server was asked and answered; ``None`` for the server's reply.
        close_if_reused: Whether a connection that served a request before is closed, and nothing passed on.
    """

    request: bool = True
    reply_bytes: int | None = None
    delay_seconds: float = 0.0
    spoil: bool = False
    instead: bytes | None = None
    lie: bytes | None = None
    close_if_reused: bool = False


class Relay(ByteServer):
    """Passes each request on to ``upstream`` as ``plan`` says."""

    def __init__(self, upstream: str, plan: Callable[[Request], Passage] = lambda request: Passage()) -> None:
        super().__init__(self._pass_on)
        self._upstream = upstream
        self._client = httpx.Client(trust_env=False, timeout=30.0, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0))
        self._served: WeakSet[socket.socket] = WeakSet()
        self.plan = plan

    def _pass_on(self, request: Request, peer: Peer) -> bytes | None:
        passage = self.plan(request)
        if passage.close_if_reused and peer.connection in self._served:
            return None
        self._served.add(peer.connection)
        answer = passage.instead or (self._ask(request) if passage.request else None)
        if answer is None:
            return None
        answer = passage.lie or answer
        peer.stopping.wait(passage.delay_seconds)
        if passage.spoil:
            answer = answer[:-20] + bytes([answer[-20] ^ 0x15]) + answer[-19:]
        if passage.reply_bytes is None:
            return answer
        peer.send(answer[: passage.reply_bytes])
        return None

    def _ask(self, request: Request) -> bytes | None:
        headers = {name: value for name, value in request.headers.items() if name in ("authorization", "content-type", "if-match")}
        try:
            response = self._client.request(request.method, self._upstream + request.path, content=request.body, headers=headers)
        except httpx.TransportError:
            return None
        request_id = response.headers.get("x-powercontext-request-id", REQUEST_ID)
        return Reply(response.status_code, response.content, {"X-PowerContext-Request-ID": request_id}).raw()
