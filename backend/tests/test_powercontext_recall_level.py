"""The level of what recall finds for the prompts people type, on a real server with its default store."""

from __future__ import annotations

from functools import partial

import pytest
from powercontext_support import OWNER, BuildManager
from powercontext_support.real_server import RealServer
from powercontext_support.recall import CaseSet, Tally, measure, remembering

pytest_plugins = ("powercontext_support.fixtures",)


def tally_of(name: str, recall_query: str, build: BuildManager, server: RealServer, asked: str = "") -> Tally:
    """Return what the prompts of the set ``asked`` (by default ``name`` itself) bring back of the memories of ``name``."""
    cases = CaseSet.load(name)
    scope_id = server.create_scope(f"level of {name} {recall_query}, asked {asked or name}")
    cases.store(server, scope_id)
    manager = build(server.base_url, scope_id=scope_id, token=server.token, recall_query=recall_query)
    return measure(lambda prompt: manager.get_context(OWNER, query=prompt), CaseSet.load(asked or name).cases, cases.memories)


@pytest.mark.parametrize(("name", "found", "expecting"), [("dev", 60, 64), ("own", 58, 64), ("tongues", 35, 39), ("fresh", 35, 40)])
def test_recall_keeps_its_level(name: str, found: int, expecting: int, powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    tally = tally_of(name, "focused", powercontext_manager, powercontext_server)
    assert (tally.expecting, tally.expecting_none) == (expecting, 12)
    assert tally.found >= found
    assert tally.false_recalls == 0
    assert tally.unrelated / tally.answers <= 0.1


def test_prompts_of_one_set_bring_back_little_of_the_other(powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    crossed = partial(tally_of, build=powercontext_manager, server=powercontext_server)
    assert crossed("own", "focused", asked="dev").answers + crossed("dev", "focused", asked="own").answers <= 18


def test_the_whole_request_finds_little(powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    """What searching and choosing is for. If this fails, the server has become better and ``full`` may do."""
    count = partial(tally_of, "dev", "full", powercontext_manager, powercontext_server)
    assert count().found <= 16


@pytest.mark.parametrize(("form", "at_least", "at_most"), [("stored", 19, 20), ("bare", 0, 8)])
def test_sentences_as_the_tools_description_wants_them_are_found(form: str, at_least: int, at_most: int, powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope_id, cases = remembering(powercontext_server, f"remembering {form}", form)
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope_id, token=powercontext_server.token)
    found = sum(case[form] in manager.get_context(OWNER, query=case["request"]) for case in cases)
    assert at_least <= found <= at_most
