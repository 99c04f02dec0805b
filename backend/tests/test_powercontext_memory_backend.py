"""The PowerContext memory backend as DeerFlow sees it: the contract's methods, over real HTTP."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest
from powercontext_support import OWNER, READY, SCOPE, TOKEN, BuildManager, Configure, StartHTTP
from powercontext_support.real_server import RealServer
from powercontext_support.replies import Reply, error

from deerflow.agents.memory import manager as contract
from deerflow.agents.memory.backends.powercontext import MANAGER_CLASS, PowerContextMemoryManager

pytest_plugins = ("powercontext_support.fixtures",)

READ_ERROR = getattr(contract, "MemoryReadError", contract.MemoryManagerError)

STRANGERS: list[Any] = [
    None, "", " ", "\t", "default", "Default", "DEFAULT", f" {OWNER}", f"{OWNER} ", f"{OWNER}\n", f"\u00a0{OWNER}", OWNER.upper(), OWNER[:-1], f"{OWNER}\x00",
    OWNER.replace("e", "\u0435"), f"{OWNER}\u200b", "*", "u-2", "../" + OWNER, 0, True, OWNER.encode(), [OWNER], {"user_id": OWNER}, object,
]  # fmt: skip


class LooksLikeTheOwner(str):
    """Equal to anything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def test_the_folder_exposes_the_manager_class() -> None:
    assert issubclass(MANAGER_CLASS, PowerContextMemoryManager)
    assert issubclass(MANAGER_CLASS, contract.MemoryManager)


def test_the_owner_recalls_what_another_host_stored(powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("recall")
    powercontext_server.remember(scope, "convention", "Order service convention: refund amounts are integer cents, never floats.")
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)

    context = manager.get_context(OWNER, query="Add a refund calculation to the order service")

    assert "Order service convention: refund amounts are integer cents, never floats." in context
    assert 'Artifact: family="atomic-memory"' in context
    assert len(context.encode()) <= 8000


def test_an_empty_answer_is_no_text(powercontext_manager: BuildManager, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("empty")
    manager = powercontext_manager(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    assert manager.get_context(OWNER, query="Add a refund calculation") == ""


def test_the_request_is_exactly_the_one_of_the_rfc(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    manager = powercontext_manager(f"{server.base_url}/prefix/", max_bytes="1200", recall_query="full")

    manager.get_context(OWNER, agent_name="researcher", thread_id="t-1", query="Add a refund calculation")

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/prefix/v1/context/prepare")
    assert request.json == {
        "scope_id": SCOPE,
        "query": "Add a refund calculation",
        "max_bytes": 1200,
        "assembly": {"format": "markdown", "sections": [{"family": "memory", "limit": 6}]},
    }
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert request.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("user_id", [*STRANGERS, LooksLikeTheOwner("u-2")], ids=repr)
def test_anyone_but_the_owner_gets_nothing_and_causes_no_request(user_id: Any, powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    manager = powercontext_manager(server.base_url)
    assert manager.get_context(user_id, query="Add a refund calculation") == ""
    assert asyncio.run(manager.aget_context(user_id, query="Add a refund calculation")) == ""
    assert server.requests == []


class Unstrippable(str):
    """Refuses to be looked at."""

    def strip(self, *characters: Any) -> str:
        raise RuntimeError


def test_no_query_makes_a_recall_raise(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    assert powercontext_manager(powercontext_http(READY).base_url).get_context(OWNER, query=Unstrippable("refund")) == ""


def test_direct_construction_quotes_nothing(powercontext_environment: Configure) -> None:
    wrong: list[dict[str, Any]] = [{"backend_config": "canary"}, {"backend_config": {"storage_path": "canary"}, "mode": "tool"}, {"backend_config": ["canary"]}]
    for arguments in wrong:
        with pytest.raises(ValueError, match="PowerContextMemoryManager") as caught:
            PowerContextMemoryManager(**arguments)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("query", [None, "", "   ", "\n\t", "\u3000", 5, ["text"]], ids=repr)
def test_without_a_request_to_search_for_there_is_no_request(query: Any, powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    assert powercontext_manager(server.base_url).get_context(OWNER, query=query) == ""
    assert server.requests == []


@pytest.mark.parametrize("recall_query", ["focused", "full"])
def test_a_request_behind_eight_thousand_blanks_is_still_searched_for(recall_query: str, powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    powercontext_manager(server.base_url, recall_query=recall_query).get_context(OWNER, query=" " * 8192 + "postgres version")
    assert server.requests[-1].json["query"] == "postgres version"


def test_a_long_query_is_cut_at_8192_characters(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    powercontext_manager(server.base_url, recall_query="full").get_context(OWNER, query="测" * 9000)
    assert server.requests[0].json["query"] == "测" * 8192


@pytest.mark.parametrize(("recall_query", "sent"), [(None, "refund"), ("focused", "refund"), ("full", "Please add a refund.")])
def test_the_query_is_focused_unless_the_operator_wants_all_of_it(recall_query: str | None, sent: str, powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    powercontext_manager(server.base_url, recall_query=recall_query).get_context(OWNER, query="Please add a refund.")
    assert server.requests[-1].json["query"] == sent


def test_lone_surrogates_become_replacement_characters(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    powercontext_manager(server.base_url, recall_query="full").get_context(OWNER, query="refund \ud83d and \U0001f600")
    assert server.requests[0].json["query"] == "refund \ufffd and \U0001f600"


def test_nothing_of_a_conversation_is_ever_sent(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"the messages were looked at: {name}")

    server = powercontext_http(READY)
    manager = powercontext_manager(server.base_url)
    messages: Any = Untouchable()
    manager.add("t-1", messages, user_id=OWNER, agent_name=None, trace_id=None)
    manager.add_nowait("t-1", messages, user_id=OWNER)
    asyncio.run(manager.aadd("t-1", messages, user_id=OWNER))
    assert manager.shutdown_flush(0.0) is True
    assert server.requests == []


def test_management_stays_unsupported(powercontext_manager: BuildManager) -> None:
    manager = powercontext_manager("http://127.0.0.1:9")
    for operation in (
        manager.get_memory,
        manager.clear_memory,
        lambda: manager.search("x"),
        lambda: manager.create_fact("x"),
    ):
        with pytest.raises(NotImplementedError):
            operation()
    assert manager.supports_search is False


def test_the_hosts_storage_path_and_hooks_are_accepted(powercontext_environment: Configure) -> None:
    hooks: dict[str, Any] = {
        "callbacks": None,
        "should_keep_hidden_message": bool,
        "host_llm_factory": None,
        "judge": None,
    }
    manager = PowerContextMemoryManager.from_config({"storage_path": "state"}, mode="middleware", **hooks)
    assert manager.backend_config == {"storage_path": "state"}


def test_fail_closed_raises_the_hosts_read_error(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(error(500, "internal_error"))
    manager = powercontext_manager(server.base_url, {"failure_policy": {"read": "fail_closed"}})
    with pytest.raises(READ_ERROR) as caught:
        manager.get_context(OWNER, query="refund")
    assert str(caught.value) == "PowerContext recall failed: PowerContextStatusError"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert manager.get_context("u-2", query="refund") == ""


@pytest.mark.parametrize(
    ("backend_config", "fatal"),
    [
        (None, False), ({}, False), ({"storage_path": "x"}, False), ({"failure_policy": {"read": "fail_open"}}, False),
        ({"failure_policy": {"read": "fail_closed"}}, True), ({"failure_policy": {"read": "fail-closed"}}, True), ({"scope_id": "x"}, False),
    ],
)  # fmt: skip
def test_whether_read_failures_are_fatal_is_known_from_the_mapping_alone(backend_config: Any, fatal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERCONTEXT_DEERFLOW_BASE_URL", raising=False)
    assert PowerContextMemoryManager.read_failures_are_fatal_for_config(backend_config) is fatal


def test_async_recall_leaves_the_event_loop_free(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    """The server answers only when the event loop, which is the one that waits for the answer, tells it to."""
    arrived, proceed = threading.Event(), threading.Event()

    def hold(request: object) -> Reply:
        arrived.set()
        return READY if proceed.wait(60) else error(500, "internal_error")

    server = powercontext_http()
    server.decide(None, hold)
    manager = powercontext_manager(server.base_url, recall_timeout_seconds="4")

    async def answer_from_the_loop() -> str:
        recall = asyncio.create_task(manager.aget_context(OWNER, query="refund"))
        while not arrived.is_set():
            await asyncio.sleep(0.01)
        proceed.set()
        return await recall

    assert asyncio.run(answer_from_the_loop()) == "Refund amounts are integer cents."


def test_after_close_calls_return_quietly(powercontext_manager: BuildManager, powercontext_http: StartHTTP, caplog: pytest.LogCaptureFixture) -> None:
    server = powercontext_http(READY)
    manager = powercontext_manager(server.base_url, {"failure_policy": {"read": "fail_closed"}})
    manager.close()
    manager.close()
    with caplog.at_level(logging.DEBUG):
        assert manager.get_context(OWNER, query="refund") == ""
        manager.warm()
        manager.add("t-1", [], user_id=OWNER)
    assert server.requests == []
    assert caplog.records == []


def test_a_recall_under_way_survives_close(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    arrived, proceed = threading.Event(), threading.Event()

    def hold(request: object) -> Reply:
        arrived.set()
        proceed.wait(5)
        return READY

    server = powercontext_http()
    server.decide(None, hold)
    manager = powercontext_manager(server.base_url, recall_query="full", recall_timeout_seconds="4")
    results: list[str] = []
    recall = threading.Thread(target=lambda: results.append(manager.get_context(OWNER, query="refund")))
    recall.start()
    assert arrived.wait(5)
    manager.close()
    proceed.set()
    recall.join(5)
    assert results == ["Refund amounts are integer cents."]


def test_construction_contacts_nothing(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    powercontext_manager(server.base_url)
    time.sleep(0.05)
    assert server.requests == []


def test_the_manager_says_that_it_takes_a_query() -> None:
    assert MANAGER_CLASS.supports_query_aware_context is True
