"""The same sentence is found again, whatever else is stored: real servers."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice, permutations
from typing import Any

import pytest
from powercontext_support import Configure, StartHTTP, binding
from powercontext_support.real_server import RealServer
from powercontext_support.replies import REMEMBER, SEARCH, Reply, answer, found, record, remembered

from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.exact_match import words_to_look_for
from deerflow.agents.memory.backends.powercontext.tools.outcomes import AlreadySaved, Saved
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

pytest_plugins = ("powercontext_support.fixtures",)

MATCH = "/v1/scopes/scp_4bn20avma1vbh7fc0rxawgxq24/artifacts/atomic-memory/search"
LIST = "/v1/atomic-memory/list"

Connect = Callable[..., Saver]


@pytest.fixture
def saver(powercontext_environment: Configure) -> Connect:
    """Return a function that connects to a server, a real one in a Scope of its own."""

    def connect(server: Any, title: str | None = None, seconds: str = "9") -> Saver:
        changes = {} if title is None else {"scope_id": server.create_scope(title), "token": server.token}
        powercontext_environment(base_url=server.base_url, remember_timeout_seconds=seconds, **changes)
        return Saver(load_settings())

    return connect


@pytest.mark.parametrize("version", ["1.4.1", "1.2.0"])
@pytest.mark.parametrize("text", ["I am Will", "The who and the what of it all.", "它就是这样", "To be, or not to be"])
def test_a_sentence_of_stop_words_is_stored_once(text: str, version: str, saver: Connect, powercontext_servers: Callable[[str], RealServer]) -> None:
    saving = saver(powercontext_servers(version), f"stop words {text}")
    assert isinstance(saving.save(binding(), "fact", text), Saved)
    again = saving.save(binding(), "fact", f" {text} ")
    assert isinstance(again, AlreadySaved)
    assert again.citation is not None


@pytest.mark.parametrize("text", ["!!!", "🎉🎉", "→ ∞", "x" * 8192, "退款" * 1360, "route " * 1300])
def test_a_text_without_a_word_or_of_one_long_one_is_stored_once(text: str, saver: Connect, powercontext_server: RealServer) -> None:
    saving = saver(powercontext_server, f"odd {len(text)} {text[:9]}")
    assert isinstance(saving.save(binding(), "fact", text), Saved)
    assert isinstance(saving.save(binding(), "fact", text), AlreadySaved)


def test_among_many_alike_each_is_stored_once(saver: Connect, powercontext_server: RealServer) -> None:
    """More than a search returns have all of its words, in another order or with other signs."""
    saving = saver(powercontext_server, "alike")
    rows = ["The row is " + " ".join(order) for order in islice(permutations(["amber", "basalt", "cobalt", "dune", "ember"]), 55)]
    scope = binding().scope_id.get_secret_value()
    for row in rows:
        powercontext_server.remember(scope, "fact", row)
    for row in (rows[0], rows[27], rows[54]):
        assert isinstance(saving.save(binding(), "fact", row), AlreadySaved)
    assert isinstance(saving.save(binding(), "convention", rows[0]), Saved)
    assert isinstance(saving.save(binding(), "fact", "The row is ember dune cobalt basalt amber"), Saved)
    assert isinstance(saving.save(binding(), "fact", "The row is ember dune cobalt basalt amber"), AlreadySaved)


def test_fewer_hits_than_a_search_returns_are_all_there_are(saver: Connect, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found(*[record(f"Fact {number}.", "fact", f"art_{number}") for number in range(49)])))
    server.answer(REMEMBER, answer(remembered(record("Fact 50."))))
    assert isinstance(saver(server).save(binding(), "fact", "Fact 50."), Saved)
    assert len(server.requests) == 2


def test_a_full_search_leads_to_a_narrow_one_and_that_to_the_list(saver: Connect, powercontext_http: StartHTTP) -> None:
    full = [record("Fact of the depot!", "fact", f"art_{number}") for number in range(50)]
    match = [{"family": "atomic-memory", "artifact_id": "art_1", "revision": 1, "content": {"kind": "fact", "text": "Fact of the depot!"}}] * 100
    server = powercontext_http()
    server.answer(SEARCH, answer(found(*full)))
    server.answer(MATCH, answer({"results": match}))
    server.answer(LIST, answer({"items": full, "next_cursor": "c2"}), answer({"items": [record("Fact of the depot.", "fact", "art_60")], "next_cursor": None}))
    outcome = saver(server).save(binding(), "fact", "Fact of the depot.")
    assert isinstance(outcome, AlreadySaved)
    assert outcome.citation is not None
    assert outcome.citation.model_dump()["artifact_id"] == "art_60"
    assert server.requests_to(MATCH)[0].json == {"query": '"fact Fact of the depot"', "mode": "text", "limit": 100, "filters": {"kind": "fact"}, "admission": {"lexical_coverage": 1}}
    assert [request.json.get("cursor") for request in server.requests_to(LIST)] == [None, "c2"]
    assert server.requests_to(REMEMBER) == []


def test_before_1_3_a_full_search_is_the_last_question(saver: Connect, powercontext_http: StartHTTP) -> None:
    """Those servers store no text twice."""
    citation = {"memory_ref": {"family": "memory", "artifact_id": "memory", "revision": 4}, "entry_id": "mem_ent_1", "entry_version_id": "mem_ver_1"}
    server = powercontext_http()
    server.answer(SEARCH, answer({"mode": "fts", "hits": [{"citation": citation, "text": "Fact of the depot!"}] * 50}))
    server.answer(MATCH, answer({"detail": "Method Not Allowed"}, 405))
    server.answer(REMEMBER, answer({"memory": citation["memory_ref"], "entry": {"citation": citation, "kind": "fact", "text": "Fact of the depot.", "state": "active"}}))
    assert isinstance(saver(server).save(binding(), "fact", "Fact of the depot."), Saved)
    assert [request.path for request in server.requests] == [SEARCH, MATCH, REMEMBER]


def test_a_list_that_never_ends_does_not_hold_a_save_even_if_its_last_page_is_slow(saver: Connect, powercontext_http: StartHTTP) -> None:
    """Of 2 s, a page that is asked for after 1.3 s would take 1.2 s."""
    first: list[float] = []

    def page(request: Any) -> Reply:
        first.append(time.monotonic())
        if first[-1] - first[0] > 1.3:
            time.sleep(1.2)
        return answer({"items": [record("Another.", "fact")], "next_cursor": "on and on"})

    server = powercontext_http()
    server.decide(LIST, page)
    server.answer(REMEMBER, answer(remembered(record("!!!"))))
    assert isinstance(saver(server, seconds="2").save(binding(), "fact", "!!!"), Saved)
    assert len(server.requests_to(REMEMBER)) == 1


def test_of_a_long_text_the_words_with_digits_and_the_longest_are_looked_for() -> None:
    text = " ".join([*[f"word{'x' * number}" for number in range(60)], "a", "7"])
    words = words_to_look_for(text)
    assert len(words) == 40
    assert words[:2] == ["7", "word" + "x" * 59]
    assert words_to_look_for("退款" * 1360) == ["退款" * 1360]
    assert words_to_look_for("!!! 🎉") == []


def test_a_reply_of_a_proxy_to_the_narrow_question_is_no_answer(saver: Connect, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found(*[record("Fact of the depot!", "fact", f"art_{number}") for number in range(50)])))
    server.answer(MATCH, Reply(502, b"<html>"), answer({"results": []}))
    server.answer(REMEMBER, answer(remembered(record("Fact of the depot."))))
    assert isinstance(saver(server).save(binding(), "fact", "Fact of the depot."), Saved)
    assert len(server.requests_to(MATCH)) == 2
