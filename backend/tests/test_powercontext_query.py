"""From a request to the words worth searching. What it finds on a real server is ``test_powercontext_recall_level.py``'s matter."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.agents.memory.backends.powercontext.recall.query import focused_query


@pytest.mark.parametrize(
    ("request_text", "query"),
    [
        ("Add a refund calculation to the order service, following its conventions.", "refund calculation order service conventions refunds calculations orders"),
        ("Why did we not go for MongoDB?", "mongodb"),
        ("Which cluster runs production?", "cluster runs production clusters run productions"),
        ("Hello! Thank you for yesterday. Could you analyse the churn dashboard?", "churn dashboard"),
        ("Rename the Kafka topic. Do not touch the consumers, no new packages, keep it short.", "kafka topic"),
        ("Look at https://example.com/a/b and src/app/main.py and explain the cache.", "cache"),
        ("```py\nprint('x')\n```\nDoes this follow our rules for React components?", "follow rules react components follows rule reacts component"),
        ("Traceback (most recent call last):\n  File \"/app/x.py\", line 2, in f\nredis.ConnectionError: Error 111\n\nCheckout has an outage again", "checkout outage"),
        ("帮我写一条小红书文案", "小红书文案"),
        ("请分析新能源汽车销量。不要画饼图，全文不超过一千字。", "新能源汽车销量"),
        ("支付网关一直报错，帮我定位", "支付网关 报错 定位"),
        ("- source: invoices\n- group by store", "invoices group store invoice groups stores"),
        ("Billing: how do we round?", "billing round"),
        ("What did we decide about 2FA?", "decide 2fa"),
        ("Deploy on the 3rd at 10am with 5 nodes", "nodes"),
        ("你好，帮我配置一下。全文检索用什么引擎？", "全文检索 引擎 配置"),
        ("你好。语言模型用哪个？", "语言模型"),
        ("Hi there. Just fix the refund rounding bug.", "refund rounding bug refunds bugs"),
        ("Thanks. Only admins can export invoices, right?", "admins invoices"),
        ("Without VAT, how are totals shown?", "vat totals"),
        ("Sketch the cafe\u0301 menu, only list the drinks, show the prices", "café menu"),
        ("I have a dog. Its name is Rex. Please find a vet for the dog?", "vet dog name rex vets dogs names rexes"),
    ],
)  # fmt: skip
def test_the_words_that_matter_are_searched_for(request_text: str, query: str) -> None:
    assert focused_query(request_text) == query


@pytest.mark.parametrize("text", ["!!!", "???", "the of and", "42", "👍", "Hello!", "谢谢", "Do not do this."])
def test_a_request_without_a_content_word_is_searched_for_as_it_is(text: str) -> None:
    assert focused_query(text) == text


@pytest.mark.parametrize(
    ("request_text", "words"),
    [
        ("¿Cómo desplegamos el servicio de pedidos?", {"desplegamos", "servicio", "pedidos"}),
        ("Как мы разворачиваем сервис заказов?", {"разворачиваем", "сервис", "заказов"}),
        ("كيف ننشر خدمة الطلبات؟", {"ننشر", "خدمة", "الطلبات"}),
        ("注文サービスの返金はどう計算しますか？", {"注文", "返金", "計算"}),
        ("डेटाबेस माइग्रेशन कैसे चलाते हैं?", {"डेटाबेस", "माइग्रेशन"}),
        ("주문 서비스의 환불은 어떻게 계산하나요?", {"주문", "환불은"}),
    ],
)
def test_words_of_other_languages_pass(request_text: str, words: set[str]) -> None:
    assert words <= set(focused_query(request_text).split())


def test_a_question_behind_a_long_paste_is_found() -> None:
    assert focused_query("some line of a long transcript\n" * 250 + "Which database holds the invoices?").startswith("database holds invoices")


def test_one_or_two_words_get_no_company() -> None:
    assert focused_query("Explain the ledger") == "ledger"
    assert focused_query("Explain the ledger export") == "ledger export"


@given(st.text(max_size=400))
def test_a_query_is_short_and_never_blank_where_the_request_is_not(text: str) -> None:
    query = focused_query(text)
    assert bool(query.strip()) is bool(text.strip())
    assert query == text or len(query.split()) <= 8


@pytest.mark.parametrize(
    "pattern",
    ["a", "a.", "a/", "a,", "测", "测，", "测a", "a？", ". ", "- ", "1.", "'", "a'", "the ", "please ", "do not ", "then ", "x: ", "\n", " ", "```\n", "我", "\\", "at a.b", "(", "？", "🙂", "Error.a", "ब"],
)
def test_no_request_takes_long(pattern: str) -> None:
    text = (pattern * 8192)[:8192]
    best = min(_seconds(text) for _ in range(3))
    assert best < 0.3  # 30 ms on an idle machine; a quadratic pattern takes seconds


def _seconds(text: str) -> float:
    started = time.perf_counter()
    focused_query(text)
    return time.perf_counter() - started
