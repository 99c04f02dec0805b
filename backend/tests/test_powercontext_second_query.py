"""The query for the chosen memories, and other forms of words: pure functions. What a server makes of the query, a real one says."""

from __future__ import annotations

import pytest
from powercontext_support import OWNER, BuildManager
from powercontext_support.real_server import RealServer

from deerflow.agents.memory.backends.powercontext.recall.forms import forms, latin_language, stem
from deerflow.agents.memory.backends.powercontext.recall.languages import FRENCH, GERMAN, SPANISH
from deerflow.agents.memory.backends.powercontext.recall.query import two_best_words
from deerflow.agents.memory.backends.powercontext.recall.request import MAX_SEARCH_WORDS, Request
from deerflow.agents.memory.backends.powercontext.recall.second_query import query_for, stricter

pytest_plugins = ("powercontext_support.fixtures",)

REFUNDS = "Refunds of the Orchard checkout are integer cents, rounded down, never floats."
LOGS = "Logs of the Orchard checkout are kept for ninety days."


def test_the_words_that_others_have_come_last() -> None:
    assert query_for([0], [REFUNDS, LOGS]) == "refunds integer rounded floats checkout orchard _ __ ___ ____ _____ ______ _______ ________ _________ __________ ___________"


def test_several_memories_need_fewer_blanks_and_four_none() -> None:
    texts = [f"{word}one {word}two {word}three {word}four {word}five {word}six" for word in ("alpha", "bravo", "delta")]
    assert [query_for([0], texts).count(" _"), query_for([0, 1], texts).count(" _")] == [11, 5]
    assert "_" not in query_for([0, 1, 2], texts)
    assert len(query_for([0, 1, 2], texts).split()) == 18


def test_a_memory_of_one_word_is_asked_for_by_it() -> None:
    assert query_for([0], ["Zimbra", LOGS]) == "zimbra"


def test_a_stricter_query_never_wants_more_hits_than_it_has_words() -> None:
    assert stricter("refund checkout ledger", 3) == "refund checkout ledger _ __ ___ ____ _____ ______"
    assert stricter("refund checkout", 3) == "refund checkout _ __ ___"
    assert stricter("refund", 3) == "refund"


@pytest.mark.parametrize("twin", ["Refunds of the Orchard checkout are integer euros.", "Logs of the Orchard checkout are integer cents."])
def test_a_twin_of_the_chosen_memory_stays_out(twin: str, powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope_id = powercontext_server.create_scope(f"twins {twin}")
    for text in (REFUNDS, LOGS, twin):
        powercontext_server.remember(scope_id, "fact", text)
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope_id, token=powercontext_server.token)
    context = manager.get_context(OWNER, query="Why are floats rounded?")
    assert REFUNDS in context
    assert twin not in context


def test_a_chinese_memory_is_prepared_by_its_own_words(powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope_id = powercontext_server.create_scope("second query, zh")
    for text in ("智能座舱竞品固定为蔚来、理想、小鹏和问界。", "用户希望调研报告采用总分总结构，结尾给出可执行的建议。"):
        powercontext_server.remember(scope_id, "knowledge", text)
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope_id, token=powercontext_server.token)
    assert "蔚来" in manager.get_context(OWNER, query="帮我列出智能座舱的竞品")


def test_the_two_best_words_are_subject_words() -> None:
    assert two_best_words(Request.read("Write a report on refunds at the checkout")) == "checkout refunds"
    assert two_best_words(Request.read("Write a report with a summary")) == ""


@pytest.mark.parametrize(
    ("words", "language"),
    [("schreib eine rechnung für einen kunden", GERMAN), ("haz una factura para un paciente", SPANISH), ("écris un devis pour une table", FRENCH), ("write an invoice for a customer", None), ("kafka", None), ("", None)],
)
def test_the_language_is_that_of_the_function_words(words: str, language: object) -> None:
    assert latin_language(words.split()) is language


def test_forms_of_a_word_share_its_stem() -> None:
    assert {stem(word) for word in ("deploy", "deploys", "deployed", "deploying")} == {"deploi"}
    assert {stem(word, GERMAN) for word in ("vortrag", "vorträge", "vorträgen")} == {"vortrag"}
    assert {"vorträge", "vorträgen"} <= set(forms("vortrag", GERMAN))
    assert "presentaciones" in forms("presentación", SPANISH)
    assert "прививки" in forms("прививку")
    assert "الإيجار" in forms("إيجار")


def test_what_is_searched_for_is_bounded() -> None:
    assert len(Request.read(" ".join(f"wort{number}" for number in range(2000))).words) == MAX_SEARCH_WORDS
    assert len(Request.read("Schreib eine Rechnung").words) <= MAX_SEARCH_WORDS
