"""Capture from the host's messages to the server: what reaches it of conversations full of what must not, and what becomes of it there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
from powercontext_support import OWNER, BuildManager
from powercontext_support.sources import SOURCES, accept, contents
from powercontext_support.transcripts import MARK, generated

pytest_plugins = ("powercontext_support.fixtures",)


@pytest.mark.parametrize("first", [0, 50, 100, 150])
def test_two_hundred_transcripts_send_nothing_that_is_marked(first: int, powercontext_manager: BuildManager, powercontext_http: Any, tmp_path: Path) -> None:
    server = powercontext_http()
    server.decide(SOURCES, accept)
    manager = powercontext_manager(server.base_url, {"storage_path": str(tmp_path)}, capture="turns")
    expected = []
    for seed in range(first, first + 50):
        messages, wrote, answered = generated(seed)
        for end in range(1, len(messages) + 1):
            manager.add_nowait(f"t{seed}", messages[:end], user_id=OWNER)
        manager.add(f"t{seed}", messages, user_id=OWNER)
        expected += wrote + answered
    assert manager.shutdown_flush(100.0) is True
    bodies = b"".join(request.get_data() for request in server.requests)
    assert MARK.encode() not in bodies
    assert set(contents(server)) <= set(expected)
    assert len(contents(server)) == len(set(contents(server))) >= 50
