"""Capture from the host's messages to the server: what reaches it of conversations full of what must not, and what becomes of it there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
from powercontext_support import OWNER, BuildManager
from powercontext_support.generation import GenerationModel
from powercontext_support.real_server import RealServer, find_executable
from powercontext_support.sources import SOURCES, accept, contents, eventually
from powercontext_support.transcripts import MARK, answer, first_turn, generated

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


def test_what_was_said_in_one_conversation_is_recalled_in_a_new_one_with_its_citation(powercontext_manager: BuildManager, tmp_path: Path) -> None:
    executable = find_executable()
    if executable is None:
        pytest.skip("no PowerContext 1.4.1 here")
    said = "The warehouse in Utrecht ships parcels on Tuesdays and Fridays."
    with GenerationModel() as model, RealServer(tmp_path, executable=executable, settings=model.server_settings(2)) as server:
        scope_id = server.create_scope("Capture")
        manager = powercontext_manager(server.base_url, {"storage_path": str(tmp_path)}, capture="turns", token=server.token, scope_id=scope_id)
        manager.add("t", [*first_turn(said, "a"), answer("I will plan the parcels for these days.", "b")], user_id=OWNER)
        assert manager.shutdown_flush(30.0) is True
        assert eventually(lambda: manager.get_context(OWNER, query="When does the warehouse in Utrecht ship parcels?") != "", 60.0, every=0.5)
        context = manager.get_context(OWNER, query="When does the warehouse in Utrecht ship parcels?")
        assert said in context
        assert 'family="atomic-memory"' in context
        assert model.evidence[:2] == [said, "I will plan the parcels for these days."]
        assert server.count_requests("capture_content_source") == 2
