"""The level of what recall finds for the prompts people type, on a real server with its default store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from powercontext_support import OWNER, BuildManager
from powercontext_support.real_server import RealServer
from powercontext_support.recall import CaseSet, Tally, measure, remembering

pytest_plugins = ("powercontext_support.fixtures",)


@pytest.fixture(scope="module")
def tally(powercontext_servers: Callable[[str], RealServer]) -> Callable[..., Tally]:
    """Return a function that tells what prompts bring back of the memories of a set, which are stored once."""
    server = powercontext_servers("1.4.1")
    scopes: dict[str, str] = {}

    def tally_of(name: str, build: BuildManager, cases: Iterable[dict[str, Any]] | None = None) -> Tally:
        asked_of = CaseSet.load(name)
        if name not in scopes:
            scopes[name] = server.create_scope(f"level of {name}")
            asked_of.store(server, scopes[name])
        manager = build(server.base_url, scope_id=scopes[name], token=server.token)
        return measure(lambda prompt: manager.get_context(OWNER, query=prompt), cases or asked_of.cases, asked_of.memories)

    return tally_of


@pytest.mark.parametrize(("name", "found", "expecting"), [("dev", 60, 64), ("own", 58, 64)])
def test_recall_keeps_its_level(name: str, found: int, expecting: int, tally: Callable[..., Tally], powercontext_manager: BuildManager) -> None:
    hold_the_level(tally(name, powercontext_manager), found, expecting, none=12)


@pytest.mark.parametrize(("name", "found", "expecting", "none"), [("tongues", 18, 20, 6), ("fresh", 17, 20, 6)])
def test_recall_keeps_its_level_in_other_languages(name: str, found: int, expecting: int, none: int, tally: Callable[..., Tally], powercontext_manager: BuildManager) -> None:
    """Half of the prompts; ``make bench-recall`` asks all."""
    hold_the_level(tally(name, powercontext_manager, CaseSet.load(name).cases[::2]), found, expecting, none)


def hold_the_level(level: Tally, found: int, expecting: int, none: int) -> None:
    assert (level.expecting, level.expecting_none) == (expecting, none)
    assert level.found >= found
    assert level.false_recalls == 0
    assert level.unrelated / level.answers <= 0.1


@pytest.mark.parametrize(("name", "asked"), [("own", "dev"), ("dev", "own")])
def test_prompts_of_one_set_bring_back_little_of_the_other(name: str, asked: str, tally: Callable[..., Tally], powercontext_manager: BuildManager) -> None:
    """A third of them; ``make bench-recall`` asks all 76."""
    assert tally(name, powercontext_manager, CaseSet.load(asked).cases[::3]).answers <= 4


@pytest.mark.parametrize(("form", "at_least", "at_most"), [("stored", 19, 20), ("bare", 0, 8)])
def test_sentences_as_the_tools_description_wants_them_are_found(form: str, at_least: int, at_most: int, powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope_id, cases = remembering(powercontext_server, f"remembering {form}", form)
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope_id, token=powercontext_server.token)
    found = sum(case[form] in manager.get_context(OWNER, query=case["request"]) for case in cases)
    assert at_least <= found <= at_most
