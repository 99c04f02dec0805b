"""Which of the memories that were found belong to a request: pure functions, plain examples."""

from __future__ import annotations

import random
import time

import pytest

from deerflow.agents.memory.backends.powercontext.recall.choosing import choose, rank
from deerflow.agents.memory.backends.powercontext.recall.request import Request

REFUNDS = "Refunds are paid in integer cents."
REPORTS = "Reports end with a summary."
KAFKA = "Kafka topics are named team.entity.event."


def chosen(request: str, *texts: str) -> list[str]:
    return [texts[at] for at in choose(Request.read(request), texts)]


def test_a_rare_word_is_enough() -> None:
    assert chosen("Add a refund to the checkout", REFUNDS, REPORTS) == [REFUNDS]


def test_an_everyday_word_is_not_enough() -> None:
    assert chosen("Write a report on whales", REPORTS, KAFKA) == []


def test_two_everyday_words_are_enough() -> None:
    assert chosen("Write a report with a summary of the whales", REPORTS, KAFKA) == [REPORTS]


def test_a_word_that_all_found_memories_have_says_nothing() -> None:
    assert chosen("Clean up Kafka", *(f"Kafka is used by service {number}." for number in range(50))) == []


def test_two_words_that_many_have_are_enough_if_hardly_any_has_both() -> None:
    kafka = [f"Kafka is used by team {number}." for number in range(20)]
    retention = [f"Retention of {number} is a week." for number in range(20)]
    assert chosen("What is the Kafka retention?", *kafka, *retention, "Kafka retention is seven days.") == ["Kafka retention is seven days."]


def test_a_word_beside_the_question_counts_less_than_one_in_it() -> None:
    assert chosen("The invoices are done. How do we round refunds?", "Invoices go out on Friday.", REFUNDS)[0] == REFUNDS


def test_a_long_request_wants_more_than_one_word() -> None:
    words = "harbour lantern meadow violin copper saddle thunder orchid compass glacier walnut feather marble bishop tunnel anchor saddler monsoon falcon tulip"
    assert chosen("Explain refund", REFUNDS) == [REFUNDS]
    assert chosen(f"Explain refund {words}", REFUNDS) == []


def test_more_than_one_memory_is_chosen_if_they_are_nearly_as_good() -> None:
    decision = "Order service decision: a refund is calculated from the captured amount."
    convention = "Order service conventions: refunds are integer cents."
    assert chosen("Add a refund calculation to the order service, following its conventions.", convention, decision, REPORTS) == [convention, decision]


def test_many_as_good_as_each_other_are_all_returned_so_that_another_rule_may_decide() -> None:
    texts = [f"Refunds of the checkout {number} need an approval." for number in range(5)]
    assert len(chosen("What about checkout refunds?", *texts)) == 5


@pytest.mark.parametrize(
    ("request_text", "memory"),
    [
        ("How are the endpoints deployed?", "Deploying an endpoint takes a ticket."),
        ("Schreib eine Rechnung", "Rechnungen werden quartalsweise gestellt."),
        ("Bereite einen Vortrag über Windkraft vor", "Vorträge haben keine Animationen."),
        ("Prepara una presentación sobre el turismo", "El usuario prefiere presentaciones cortas."),
        ("Écris un devis pour l'atelier", "Les devis d'atelier sont valables un mois."),
        ("Escreva um contrato de aluguel", "Os contratos têm fiador."),
        ("Составь договор аренды", "Договоры хранятся у юриста."),
        ("Scrivi un preventivo", "I preventivi valgono trenta giorni."),
        ("اكتب عقد إيجار", "الإيجار سنة واحدة."),
        ("카페 원두는 언제 로스팅해?", "원두를 월요일에 볶는다."),
        ("図書館アプリのバックアップはいつ？", "バックアップを日曜に取る。"),
        ("猫の餌は？", "猫には餌を二回。"),
        ("写一份租赁合同", "合同条款用编号列出。"),
    ],
)
def test_other_forms_of_a_word_are_the_same_word(request_text: str, memory: str) -> None:
    assert chosen(request_text, memory) == [memory]


@pytest.mark.parametrize(
    ("request_text", "memory"),
    [
        ("Was ist der Unterschied zwischen einem Virus und einem Bakterium?", "Der Nutzer möchte Vorträge mit einer Quelle auf jeder Folie."),
        ("¿Cuál es la capital de Australia y por qué no es Sídney?", "La mudanza de la oficina es el 12 de julio."),
        ("Raconte l'histoire de la tour Eiffel en cinq phrases.", "Le voyage à Bruges a lieu en mai."),
        ("Расскажи, почему небо голубое.", "Пользователь предпочитает отчёты с выводом."),
        ("なぜ空は青いのか、説明して。", "ユーザーは議事録を箇条書きでまとめてほしい。"),
        ("给我讲讲黑洞是怎么形成的", "用户希望报告采用总分结构。"),
    ],
)
def test_the_function_words_of_a_language_are_no_reason(request_text: str, memory: str) -> None:
    assert chosen(request_text, memory) == []


def test_a_ranking_has_no_floor_and_leaves_out_what_shares_nothing() -> None:
    request = Request.read("Write a report about refunds")
    assert rank(request, [KAFKA, REPORTS, REFUNDS]) == [2, 1]


def test_nothing_found_and_nothing_asked_choose_nothing() -> None:
    assert choose(Request.read("refund"), []) == []
    assert choose(Request.read("!!!"), [REFUNDS]) == []
    assert rank(Request.read(""), [REFUNDS]) == []


@pytest.mark.parametrize("signs", ["的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得", "abcdefgh ", "аеиорст ", "カがの測"])
def test_choosing_from_the_longest_memories_for_the_longest_request_takes_no_seconds(signs: str) -> None:
    chance = random.Random(7)
    text = "".join(chance.choice(signs) for _ in range(8192))
    memories = [text[start : start + 2700] for start in range(0, 5000, 100)]
    started = time.perf_counter()
    choose(Request.read(text), memories)
    assert time.perf_counter() - started < 5  # 0.1 s on an idle machine
