"""``mode: tool``: DeerFlow's fact operations on real servers of both generations, and what a bad server makes of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from powercontext_support import OWNER, Configure, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request
from powercontext_support.real_server import RealServer
from powercontext_support.replies import answer, error

from deerflow.agents.memory import manager as contract
from deerflow.agents.memory.backends.powercontext import MANAGER_CLASS

pytest_plugins = ("powercontext_support.fixtures",)

TEXT = "Order service convention: refund amounts are integer cents."
Build = Callable[..., Any]


@pytest.fixture
def build(powercontext_environment: Configure) -> Iterator[Build]:
    """Return a function that builds the manager of ``mode: tool``, as DeerFlow's factory does."""
    built: list[Any] = []

    def manager(**settings: str | None) -> Any:
        powercontext_environment(**settings)
        built.append(MANAGER_CLASS.from_config({"storage_path": "state"}, mode="tool"))
        assert built[-1].mode == "tool"
        return built[-1]

    yield manager
    for each in built:
        each.close()


@pytest.fixture(params=["1.4.1", "1.2.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def memory(version: str, powercontext_servers: Callable[[str], RealServer], build: Build) -> Any:
    server = powercontext_servers(version)
    return build(base_url=server.base_url, scope_id=server.create_scope(f"tool mode {uuid4()}"), token=server.token, recall_timeout_seconds="4", remember_timeout_seconds="9")


def test_a_fact_is_saved_found_corrected_and_forgotten(memory: Any, version: str) -> None:
    document, identifier = memory.create_fact(TEXT, category="convention", user_id=OWNER)
    assert [item["content"] for item in document["facts"]] == [TEXT]
    [found] = memory.search("What are refund amounts?", user_id=OWNER)
    assert (found["content"], found["source"], found["confidence"]) == (TEXT, "powercontext", None)
    assert found["category"] == ("convention" if version == "1.4.1" else found["category"])
    json.dumps(found, allow_nan=False)
    assert found["id"] == identifier

    [corrected] = memory.update_fact(identifier, content="Refund amounts are whole euros.", category="decision", user_id=OWNER)["facts"]
    assert (corrected["content"], corrected["category"]) == ("Refund amounts are whole euros.", "decision")
    assert memory.delete_fact(corrected["id"], user_id=OWNER)["facts"] == []
    assert memory.search("refund amounts", user_id=OWNER) == []


def test_what_is_gone_is_not_found(memory: Any) -> None:
    document, identifier = memory.create_fact(TEXT, user_id=OWNER)
    memory.delete_fact(identifier, user_id=OWNER)
    with pytest.raises(KeyError):
        memory.delete_fact(identifier, user_id=OWNER)
    with pytest.raises(KeyError):
        memory.update_fact(identifier, content="x", user_id=OWNER)
    for invented in ("fact_1", "", identifier.replace("mem_ent_", "mem_ent_0").replace("art_", "art_0"), "atomic-memory@art_1@1"):
        with pytest.raises(KeyError):
            memory.delete_fact(invented, user_id=OWNER)
    assert document["facts"][0]["content"] == TEXT


def test_a_fact_that_was_there_before_is_a_duplicate(memory: Any) -> None:
    memory.create_fact(TEXT, category="fact", user_id=OWNER)
    with pytest.raises(ValueError, match=r"^Duplicate fact$"):
        memory.create_fact(f"  {TEXT}\n", category="fact", user_id=OWNER)


def test_a_fact_that_was_changed_meanwhile_is_a_conflict(memory: Any) -> None:
    _, identifier = memory.create_fact(TEXT, user_id=OWNER)
    memory.update_fact(identifier, content="Refund amounts are whole euros.", user_id=OWNER)
    with pytest.raises(contract.MemoryConflictError, match="changed meanwhile"):
        memory.update_fact(identifier, content="Refund amounts are dollars.", user_id=OWNER)
    with pytest.raises(contract.MemoryConflictError):
        memory.delete_fact(identifier, user_id=OWNER)
    assert [item["content"] for item in memory.get_memory(user_id=OWNER)["facts"]] == ["Refund amounts are whole euros."]


def test_any_category_becomes_the_kind_and_selects(memory: Any, version: str) -> None:
    memory.create_fact("The depot opens at six.", category="Öffnungs zeit", user_id=OWNER)
    assert memory.get_memory(user_id=OWNER)["facts"][0]["category"] == "Öffnungs zeit"
    if version == "1.4.1":  # before 1.3 a search does not tell the kind
        assert memory.search("depot", category="context", user_id=OWNER) == []
        assert len(memory.search("depot", category="Öffnungs zeit", user_id=OWNER)) == 1


@pytest.mark.parametrize(("content", "category"), [("", "fact"), (" \n", "fact"), ("x" * 8193, "fact"), ("\ud800", "fact"), ("x", ""), ("x", " "), ("x", "k" * 129)])
def test_what_cannot_be_saved_is_refused_with_the_reason(content: str, category: str, memory: Any) -> None:
    with pytest.raises(ValueError, match=r"^Not saved: "):
        memory.create_fact(content, category=category, user_id=OWNER)
    assert memory.get_memory(user_id=OWNER)["facts"] == []


def test_times_are_the_servers_and_never_invented(memory: Any, version: str) -> None:
    before = datetime.now(UTC)
    memory.create_fact(TEXT, user_id=OWNER)
    document = memory.get_memory(user_id=OWNER)
    datetime.fromisoformat(document["lastUpdated"].replace("Z", "+00:00"))
    [item] = document["facts"]
    if version == "1.4.1":
        assert abs((datetime.fromisoformat(item["createdAt"].replace("Z", "+00:00")) - before).total_seconds()) < 60
    else:
        assert item["createdAt"] == ""


def test_anybody_without_a_binding_has_an_empty_document_and_causes_no_request(build: Build, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    memory = build(base_url=server.base_url)
    for nobody in ("u-2", "default", None, ""):
        assert memory.get_memory(user_id=nobody)["facts"] == []
        assert memory.search("x", user_id=nobody) == []
        with pytest.raises(ValueError, match="no memory is set up for this user"):
            memory.create_fact("x", user_id=nobody)
        with pytest.raises(KeyError):
            memory.delete_fact("atomic-memory@art_1@1", user_id=nobody)
    assert server.requests == []


def test_emptying_and_importing_stay_unsupported(build: Build) -> None:
    memory = build()
    operations: list[Callable[[], Any]] = [memory.clear_memory, lambda: memory.import_memory({}), memory.delete_memory]
    for operation in operations:
        with pytest.raises(NotImplementedError):
            operation()


def test_the_contracts_flags_say_what_is_there(build: Build) -> None:
    memory = build()
    assert (memory.supports_search, memory.requires_passive_writes_in_tool_mode) == (True, False)


FAILURES = {
    "a proxy's page": answer("<html>", 502),
    "an unknown shape": answer({"hits": "none"}),
    "locked": error(500, "internal_error"),
    "overloaded": error(503, "server_overloaded"),
    "no such Scope": error(404, "scope_not_found"),
    "token": error(401, "unauthorized"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_an_error_and_never_an_empty_answer(name: str, build: Build, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(None, FAILURES[name])
    memory = build(base_url=server.base_url, recall_timeout_seconds="1", remember_timeout_seconds="1")
    citation = "atomic-memory@art_1@1"
    operations: list[Callable[[], Any]] = [
        lambda: memory.search("depot", user_id=OWNER),
        lambda: memory.get_memory(user_id=OWNER),
        lambda: memory.create_fact("The depot opens at six.", user_id=OWNER),
        lambda: memory.update_fact(citation, content="x", user_id=OWNER),
        lambda: memory.delete_fact(citation, user_id=OWNER),
    ]
    for operation in operations:
        with pytest.raises((contract.MemoryManagerError, KeyError)) as caught:
            operation()
        assert "Server text" not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_list_that_fails_says_that_nothing_was_done_for_the_hosts_memory_add_lists_before_it_saves(build: Build, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(error(500, "internal_error"))
    with pytest.raises(contract.MemoryManagerError, match=r"^Nothing was done: the memory server did not answer as it should; try again later\.$"):
        build(base_url=server.base_url).get_memory(user_id=OWNER)


def test_a_silent_server_holds_two_of_the_hosts_threads_at_most(build: Build, powercontext_bytes: StartBytes) -> None:
    def silent(request: Request, peer: Peer) -> None:
        peer.hang()

    memory = build(base_url=powercontext_bytes(silent).base_url, recall_timeout_seconds="3")
    durations: list[float] = []

    def look() -> None:
        started = time.monotonic()
        with pytest.raises(contract.MemoryManagerError):
            memory.search("depot", user_id=OWNER)
        durations.append(time.monotonic() - started)

    threads = [threading.Thread(target=look) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(durations)[9] < 2.5  # ten of twelve did not wait for the server
