"""A server that takes sources as a test says, and what the tests of capture say again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .replies import Reply, answer

SOURCES = "/v1/sources/content"


def accepted(source_id: str, position: int = 1) -> Reply:
    """Return the reply to a source that is stored."""
    return answer({"status": "accepted", "source": {"name": "content", "source_id": source_id}, "position": position}, 202)


def accept(request: Any) -> Reply:
    """Accept the source of ``request``."""
    return accepted(request.json["source_id"])


def contents(server: Any) -> list[str]:
    """Return the contents of all sources that ``server`` was sent, in order."""
    return [request.json["content"] for request in server.requests_to(SOURCES)]


def eventually(condition: Callable[[], bool], seconds: float = 30.0, *, every: float = 0.01) -> bool:
    """Return whether ``condition``, asked ``every`` so many seconds, comes true within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
