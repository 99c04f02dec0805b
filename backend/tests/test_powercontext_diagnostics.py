"""What operators read in the log, and what must never be in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from powercontext_support import OWNER, READY, SCOPE, BuildManager, StartBytes, StartHTTP
from powercontext_support.real_server import RealServer
from powercontext_support.replies import REQUEST_ID, Reply, answer

from deerflow.agents.memory.backends.powercontext.host import host_forwards_query

pytest_plugins = ("powercontext_support.fixtures",)

SERVER_TEXT = "canary-of-the-server"
QUERY = "canary-of-the-query"


def refusal(status: int, code: str) -> Reply:
    return answer({"error": {"code": code, "message": SERVER_TEXT, "details": None}}, status)


OVERLOADED = refusal(503, "server_overloaded")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def lines(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level and record.name.startswith("deerflow")]


def test_one_warning_when_recall_breaks_and_one_info_when_it_is_back(powercontext_manager: BuildManager, powercontext_bytes: StartBytes, log: Any) -> None:
    answers = iter([READY, OVERLOADED, OVERLOADED, OVERLOADED, READY, READY])
    manager = powercontext_manager(powercontext_bytes(lambda request, peer: next(answers)).base_url, recall_query="full")
    for _ in range(6):
        manager.get_context(OWNER, query=QUERY)

    [warning] = lines(log, logging.WARNING)
    facts = f"PowerContextUnavailableError, in prepare_context, the server answered 503, code server_overloaded, request {REQUEST_ID}, "
    assert warning.startswith(f"PowerContext recall failed: {facts}")
    assert warning.endswith(" ms. Conversations start without memory until it is back.")
    assert lines(log, logging.INFO) == ["PowerContext recall is back; failed calls in between: 3."]
    assert [line.split(",")[0] for line in lines(log, logging.DEBUG)] == [
        "PowerContext recall: 33 bytes",
        "PowerContext recall failed: PowerContextUnavailableError",
        "PowerContext recall failed: PowerContextUnavailableError",
        "PowerContext recall: 33 bytes",
        "PowerContext recall: 33 bytes",
    ]


def test_the_warning_says_what_a_failure_does_under_the_policy(powercontext_manager: BuildManager, log: Any) -> None:
    manager = powercontext_manager("http://127.0.0.1:9", {"failure_policy": {"read": "fail_closed"}})
    with pytest.raises(RuntimeError):
        manager.get_context(OWNER, query=QUERY)
    [warning] = lines(log, logging.WARNING)
    assert warning.endswith(" ms. Runs that need memory stop until it is back.")


def test_a_caller_who_gets_nothing_is_noted_at_debug(powercontext_manager: BuildManager, log: Any) -> None:
    powercontext_manager("http://127.0.0.1:9").get_context("u-2", query=QUERY)
    assert lines(log, logging.DEBUG) == ["PowerContext recall: the caller has no binding and gets nothing."]


def test_a_stranger_who_asks_before_the_owner_ever_has_is_told_of_once_without_any_id(powercontext_manager: BuildManager, log: Any) -> None:
    manager = powercontext_manager("http://127.0.0.1:9")
    for nobody in (None, "", "default", " u-2"):
        manager.get_context(nobody, query=QUERY)
    assert lines(log, logging.INFO) == []
    for _ in range(3):
        manager.get_context("u-2", query=QUERY)
    [info] = lines(log, logging.INFO)
    assert info == "A signed-in user whom POWERCONTEXT_DEERFLOW_OWNER_USER_ID does not name asked for memory, and nobody it names has so far. If this user is to have memory, the id there is wrong."


def test_a_stranger_who_asks_after_the_owner_is_nothing_to_tell(powercontext_manager: BuildManager, powercontext_http: StartHTTP, log: Any) -> None:
    manager = powercontext_manager(powercontext_http(READY).base_url)
    manager.get_context(OWNER, query=QUERY)
    manager.get_context("u-2", query=QUERY)
    assert lines(log, logging.INFO) == []


@pytest.mark.parametrize("owner", ["user-1", OWNER.upper(), OWNER[:-1]])
def test_an_owner_id_that_is_not_shaped_like_deerflows_is_warned_of(owner: str, powercontext_manager: BuildManager, log: Any) -> None:
    powercontext_manager("http://127.0.0.1:9", owner_user_id=owner)
    [warning] = lines(log, logging.WARNING)
    assert warning.startswith("POWERCONTEXT_DEERFLOW_OWNER_USER_ID is not shaped like the ids in DeerFlow's user table (a UUID in lower case)")
    assert owner not in warning


def test_memory_is_not_called_ready_where_sign_in_is_switched_off(powercontext_manager: BuildManager, powercontext_server: RealServer, monkeypatch: pytest.MonkeyPatch, log: Any) -> None:
    scope = powercontext_server.create_scope("sign-in")
    monkeypatch.setenv("DEER_FLOW_AUTH_DISABLED", "1")
    powercontext_manager(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token).warm()
    [warning] = lines(log, logging.WARNING)
    assert "DEER_FLOW_AUTH_DISABLED=1 makes every caller `default`" in warning
    assert not any("ready" in line for line in lines(log, logging.INFO))


@pytest.mark.parametrize("query", [None, [{"type": "text", "text": QUERY}]])
def test_a_host_that_forwards_no_text_is_told_once(query: Any, powercontext_manager: BuildManager, log: Any) -> None:
    manager = powercontext_manager("http://127.0.0.1:9")
    for _ in range(3):
        manager.get_context(OWNER, query=query)
    [info] = lines(log, logging.INFO)
    assert "needs a DeerFlow that forwards the user's request" in info


def test_an_attachment_without_text_is_no_reason_to_complain(powercontext_manager: BuildManager, powercontext_http: StartHTTP, log: Any) -> None:
    manager = powercontext_manager(powercontext_http(READY).base_url)
    manager.get_context(OWNER, query=QUERY)
    manager.get_context(OWNER, query=None)
    assert lines(log, logging.INFO) == []


def test_a_budget_with_room_for_almost_nothing_is_warned_of(powercontext_manager: BuildManager, log: Any) -> None:
    powercontext_manager("http://127.0.0.1:9", max_bytes="600")
    assert lines(log, logging.WARNING) == ["POWERCONTEXT_DEERFLOW_MAX_BYTES is below 1000: hardly any memory fits into that; 8000 is the default."]


def test_warm_finds_a_real_server_ready(powercontext_manager: BuildManager, powercontext_server: RealServer, log: Any) -> None:
    scope = powercontext_server.create_scope("warm")
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    assert manager.warm() is None  # type: ignore[func-returns-value]  # the host reads it
    if not host_forwards_query():
        [warning] = lines(log, logging.WARNING)
        assert "this DeerFlow forwards no query" in warning
        return
    [info] = lines(log, logging.INFO)
    assert info.startswith("PowerContext memory is ready (")


def problem_at(path: str, reply: Reply) -> Callable[[Any], Reply]:
    """Answer like a healthy server, but with ``reply`` at ``path``."""
    healthy = {
        "/health/ready": {"status": "ready"},
        "/v1/server-info": {
            "product": "powercontext",
            "package_version": "1.4.1",
            "api_contract_version": {"major": 1, "minor": 4},
        },
    }
    return lambda request: reply if request.path.startswith(path) else answer(healthy.get(request.path, {"scope_id": SCOPE}))


@pytest.mark.parametrize(
    ("path", "reply", "words"),
    [
        ("/health", answer({"status": "not_ready"}, 503), "is not ready"),
        ("/health", Reply(502, b"<html>"), "a proxy on the way does not reach PowerContext"),
        ("/health", Reply(429, b"<html>"), "a proxy on the way limits the requests"),
        ("/health", Reply(400, b"<html>"), "something else than PowerContext answers"),
        ("/v1", Reply(401, b"<html>"), "something else than PowerContext answers"),
        ("/v1/scopes", refusal(503, "access_unavailable"), "is not ready"),
        ("/v1/scopes", refusal(422, "invalid_request"), "refuses the question (the server answered 422, invalid_request)"),
        ("/v1/scopes", refusal(500, "internal_error"), "fails inside"),
        ("/v1", refusal(401, "unauthorized"), "refuses the token"),
        ("/v1/scopes", refusal(403, "forbidden"), "refuses the token"),
        ("/v1/scopes", refusal(404, "scope_not_found"), "has no such Scope"),
        ("/v1/", answer({"detail": "Not Found"}, 404), "does not know PowerContext's API"),
        ("/", answer({"detail": "Not Found"}, 404), "does not know PowerContext's API"),
        ("/", Reply(200, SERVER_TEXT.encode()), "something else than PowerContext answers (the reply is not what"),
        ("/v1", Reply(200, SERVER_TEXT.encode()), "does not answer as it should"),
    ],
)  # fmt: skip
def test_warm_tells_problems_apart(
    path: str,
    reply: Reply,
    words: str,
    powercontext_manager: BuildManager,
    powercontext_http: StartHTTP,
    log: Any,
) -> None:
    server = powercontext_http()
    server.decide(None, problem_at(path, reply))
    manager = powercontext_manager(server.base_url)
    manager.warm()
    [warning] = lines(log, logging.WARNING)
    assert words in warning
    assert SERVER_TEXT not in log.text


def test_warm_says_when_nothing_answers(powercontext_manager: BuildManager, log: Any) -> None:
    powercontext_manager("http://127.0.0.1:9").warm()
    [warning] = lines(log, logging.WARNING)
    assert "cannot be reached" in warning
    assert "POWERCONTEXT_DEERFLOW_BASE_URL" in warning
