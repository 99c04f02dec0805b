"""What a PowerContext server answers, as data: the same replies for the HTTP server and for the byte server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

REQUEST_ID = "0123456789abcdef"

PREPARE = "/v1/context/prepare"
REMEMBER = "/v1/memory/remember"
SEARCH = "/v1/memory/search"
ATOMIC_SEARCH = "/v1/scopes/scp_4bn20avma1vbh7fc0rxawgxq24/artifacts/atomic-memory/search"
READINESS = "/health/ready"

_CAPTURED = Path(__file__).parent / "captured"


@dataclass(frozen=True)
class Reply:
    """A whole reply. Both servers add the length of the body and the server's request id."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def all_headers(self) -> dict[str, str]:
        """Return the headers that go over the wire."""
        length = {"Content-Length": str(len(self.body))}
        return {"Content-Type": "application/json", "X-PowerContext-Request-ID": REQUEST_ID} | length | self.headers

    def raw(self) -> bytes:
        """Return the bytes that the byte server sends."""
        head = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in self.all_headers().items())]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + self.body


def answer(body: object, status: int = 200) -> Reply:
    """Return a reply with the JSON of ``body``."""
    return Reply(status, json.dumps(body, ensure_ascii=False).encode())


def error(status: int, code: str) -> Reply:
    """Return a refusal in PowerContext's own envelope."""
    return answer({"error": {"code": code, "message": "Server text.", "details": None}}, status)


def captured(version: str, name: str, status: int = 200) -> Reply:
    """Return what a real server of ``version`` answered, from ``captured/``."""
    return Reply(status, (_CAPTURED / version / f"{name}.json").read_bytes())


def prepared(content: str | None, **changes: object) -> dict[str, object]:
    """Return the body of ``POST /v1/context/prepare``: ``content``, or the empty context where it is ``None``."""
    size = 0 if content is None else len(content.encode())
    status = "empty" if content is None else "ready"
    return {
        "schema": "powercontext.prepared-context.v1",
        "status": status,
        "content": content,
        "content_bytes": size,
    } | changes


def record(text: str, kind: str = "fact", artifact_id: str = "art_1", **changes: object) -> dict[str, object]:
    """Return one memory as servers from 1.3 on write it."""
    artifact = {"family": "atomic-memory", "artifact_id": artifact_id, "revision": 1}
    return {
        "artifact": artifact,
        "kind": kind,
        "text": text,
        "state": "active",
        "state_version": 0,
        "merged_into_id": None,
    } | changes


def remembered(*records: dict[str, object], changed: bool = True) -> dict[str, object]:
    """Return the body of ``POST /v1/memory/remember``."""
    return {"changed": changed, "records": list(records)}


def found(*records: dict[str, object]) -> dict[str, object]:
    """Return the body of a search by words that found ``records``."""
    hits = [{"memory": memory, "score": 0.016, "matched_by": ["text"]} for memory in records]
    return {"mode": "text", "hits": hits}


def atomic(*texts: str, kind: str = "fact") -> dict[str, object]:
    """Return the body of a search of atomic memory that found memories with ``texts``."""
    return {
        "results": [
            {
                "family": "atomic-memory",
                "artifact_id": f"art_{number}",
                "revision": 1,
                "content": {"schema": "powercontext.atomic-memory.v1", "kind": kind, "text": text, "creation": None},
                "lineage": {"sources": [], "artifacts": [], "publication_source": None, "publication_digest": None},
            }
            for number, text in enumerate(texts)
        ]
    }
