"""The byte server's names until every test uses the new ones."""

from __future__ import annotations

from .byte_server import ByteServer as ScriptedServer
from .byte_server import Peer, Request, Script, always
from .replies import REQUEST_ID, Reply, answer, prepared


def reply(status: int, body: bytes, *headers: str) -> bytes:
    """Return a complete HTTP reply."""
    return Reply(status, body, dict(header.split(": ", 1) for header in headers)).raw()


def json_reply(status: int, body: object) -> bytes:
    """Return a complete HTTP reply with a JSON body."""
    return answer(body, status).raw()


__all__ = ["REQUEST_ID", "Peer", "Request", "Script", "ScriptedServer", "always", "json_reply", "prepared", "reply"]
