"""Several people on one DeerFlow, on real servers: each has their own memory, and one's trouble is nobody else's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from powercontext_support import BuildManager, StartHTTP
from powercontext_support.real_server import RealServer
from powercontext_support.replies import PREPARE, answer, atomic, error, prepared

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.api.client import PowerContextClient
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextAuthenticationError
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.settings.people import Binding
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("pytest_httpserver")

ANN, BEN, CID = "canary-user-ann", "canary-user-ben", "canary-user-cid"
SAID = {ANN: "The ferry to Orkney leaves from pier seven.", BEN: "The ferry to Orkney leaves from pier nine."}
QUERY = "Where does the ferry to Orkney leave from?"

BuildPeople = Callable[..., PowerContextMemoryManager]
Entries = list[dict[str, Any]]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def lines(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level and record.name.startswith("deerflow")]


def bound(user_id: str) -> Binding:
    binding = load_settings().people.binding_of(user_id)
    assert binding is not None
    return binding


def stored(server: RealServer, scope_id: str) -> list[str]:
    entries = server.request("POST", "/v1/memory/entries/list", {"scope_id": scope_id, "limit": 50}).raise_for_status().json()["entries"]
    return sorted(entry["text"] for entry in entries)


def grant(server: RealServer, name: str, scope_id: str) -> None:
    """Let a principal use a Scope, as the administrator."""
    body = {"subject": {"type": "user", "id": name}, "resource": {"type": "scope", "scope_id": scope_id}, "role": "scope.contributor", "idempotency_key": f"{name}-{scope_id}"}
    server.request("POST", "/v1/access/bindings/create", body).raise_for_status()


@pytest.fixture(params=["one token", "a token each"])
def deployment(request: pytest.FixtureRequest, powercontext_principals: RealServer) -> tuple[RealServer, Entries]:
    """Return a server and what binds Ann and Ben to Scopes of their own there; the one token is the administrator's."""
    server, entries = powercontext_principals, []
    for user_id, principal in ((ANN, "ann"), (BEN, "ben")):
        scope_id = server.create_scope(f"{request.node.name} {user_id}")
        entries.append({"owner_user_id": user_id, "scope_id": scope_id})
        if request.param == "a token each":
            grant(server, principal, scope_id)
            entries[-1]["token"] = f"{principal}s-own-test-token"
    return server, entries


def test_each_person_has_their_own_memory(deployment: tuple[RealServer, Entries], powercontext_people: BuildPeople) -> None:
    server, entries = deployment
    manager = powercontext_people(server.base_url, *entries, token=server.token)
    saver = Saver(load_settings())
    for user_id, text in SAID.items():
        assert saver.save(bound(user_id), "fact", text).__class__.__name__ == "Saved"
    recalled = {user_id: manager.get_context(user_id, query=QUERY) for user_id in (ANN, BEN, CID)}
    assert [SAID[ANN] in recalled[user_id] for user_id in (ANN, BEN, CID)] == [True, False, False]
    assert [SAID[BEN] in recalled[user_id] for user_id in (ANN, BEN, CID)] == [False, True, False]
    assert [stored(server, entry["scope_id"]) for entry in entries] == [[SAID[ANN]], [SAID[BEN]]]


def test_identical_saves_by_two_people_are_two_saves(deployment: tuple[RealServer, Entries], powercontext_people: BuildPeople) -> None:
    server, entries = deployment
    powercontext_people(server.base_url, *entries, token=server.token)
    saver = Saver(load_settings())
    outcomes = [saver.save(bound(user_id), "fact", "The library closes at nine.") for user_id in (ANN, BEN, ANN, BEN)]
    assert [type(outcome).__name__ for outcome in outcomes] == ["Saved", "Saved", "AlreadySaved", "AlreadySaved"]
    assert [stored(server, entry["scope_id"]) for entry in entries] == [["The library closes at nine."]] * 2


def crossed(entries: Entries) -> Entries:
    """Return the entries with each other's Scopes: what a mistake in this process would ask for."""
    return [entry | {"scope_id": other["scope_id"]} for entry, other in zip(entries, reversed(entries), strict=True)]


def test_with_a_token_each_the_server_separates_them_as_well(powercontext_people: BuildPeople, powercontext_principals: RealServer, request: pytest.FixtureRequest) -> None:
    server = powercontext_principals
    entries = []
    for user_id, principal in ((ANN, "ann"), (BEN, "ben")):
        scope_id = server.create_scope(f"{request.node.name} {user_id}")
        grant(server, principal, scope_id)
        entries.append({"owner_user_id": user_id, "scope_id": scope_id, "token": f"{principal}s-own-test-token"})
        server.remember(scope_id, "fact", SAID[user_id])
    manager = powercontext_people(server.base_url, *crossed(entries))
    assert [manager.get_context(user_id, query=QUERY) for user_id in (ANN, BEN)] == ["", ""]
    client = PowerContextClient(load_settings())
    for ask in (
        lambda: client.get_scope(bound(ANN), deadline=Deadline.after(5)),
        lambda: client.prepare_context(bound(ANN), QUERY, deadline=Deadline.after(5)),
        lambda: client.search_memory(bound(ANN), QUERY, deadline=Deadline.after(5)),
        lambda: client.remember_memory(bound(ANN), "fact", "canary", deadline=Deadline.after(5)),
    ):
        with pytest.raises(PowerContextAuthenticationError) as caught:
            ask()
        assert (caught.value.status_code, caught.value.code) == (403, "forbidden")
    client.close()
    assert [stored(server, entry["scope_id"]) for entry in entries] == [[SAID[ANN]], [SAID[BEN]]]


def test_with_one_token_only_this_process_separates_them(powercontext_people: BuildPeople, powercontext_server: RealServer, request: pytest.FixtureRequest) -> None:
    scopes = [powercontext_server.create_scope(f"{request.node.name} {user_id}") for user_id in (ANN, BEN)]
    for scope_id, text in zip(scopes, SAID.values(), strict=True):
        powercontext_server.remember(scope_id, "fact", text)
    entries = [{"owner_user_id": user_id, "scope_id": scope_id} for user_id, scope_id in zip((ANN, BEN), reversed(scopes), strict=True)]
    manager = powercontext_people(powercontext_server.base_url, *entries, token=powercontext_server.token)
    assert SAID[BEN] in manager.get_context(ANN, query=QUERY)  # the file is what decides


def test_whoever_is_taken_out_of_the_file_gets_nothing_and_loses_nothing(deployment: tuple[RealServer, Entries], powercontext_people: BuildPeople) -> None:
    server, entries = deployment
    for entry in entries:
        server.remember(entry["scope_id"], "fact", SAID[entry["owner_user_id"]])
    before = powercontext_people(server.base_url, *entries, token=server.token)
    assert SAID[BEN] in before.get_context(BEN, query=QUERY)
    after = powercontext_people(server.base_url, entries[0], token=server.token)
    asked = server.count_requests("prepare_context")
    assert after.get_context(BEN, query=QUERY) == ""
    assert load_settings().people.binding_of(BEN) is None
    assert server.count_requests("prepare_context") == asked
    assert SAID[ANN] in after.get_context(ANN, query=QUERY)
    assert stored(server, entries[1]["scope_id"]) == [SAID[BEN]]


# ---- one person's trouble


THREE = [{"owner_user_id": user_id, "scope_id": f"scp_canary_{user_id[-3:]}", "token": f"canary-token-{user_id[-3:]}"} for user_id in (ANN, BEN, CID)]


@pytest.mark.parametrize(("status", "code", "kind"), [(401, "unauthorized", "Authentication"), (403, "forbidden", "Authentication"), (404, "scope_not_found", "ScopeNotFound")])
def test_one_persons_trouble_is_told_once_with_its_number_and_is_nobody_elses(status: int, code: str, kind: str, powercontext_people: BuildPeople, powercontext_http: StartHTTP, log: pytest.LogCaptureFixture) -> None:
    server = powercontext_http()
    refused = ["Bearer canary-token-ben"]
    healthy = {PREPARE: answer(prepared("Pier seven."))}  # and the search finds nothing
    server.decide(None, lambda request: error(status, code) if request.headers["authorization"] in refused else healthy.get(request.path, answer(atomic())))
    manager = powercontext_people(server.base_url, *THREE)
    log.clear()
    for _ in range(30):
        assert manager.get_context(BEN, query=QUERY) == ""
        assert manager.get_context(ANN, query=QUERY) == "Pier seven."
    [warning] = lines(log, logging.WARNING)
    assert warning.startswith(f"PowerContext recall failed: PowerContext{kind}Error, in ")
    assert f", the server answered {status}, code {code}, request 0123456789abcdef, binding 2 of 3, " in warning
    assert lines(log, logging.INFO) == []
    refused.clear()
    assert manager.get_context(BEN, query=QUERY) == "Pier seven."
    assert lines(log, logging.INFO) == ["PowerContext recall is back for binding 2 of 3; failed calls in between: 30."]
    assert "canary" not in log.text


def test_everybodys_trouble_is_told_once_and_without_a_number(powercontext_people: BuildPeople, powercontext_http: StartHTTP, log: pytest.LogCaptureFixture) -> None:
    server = powercontext_http()
    server.answer(None, error(500, "internal_error"))
    manager = powercontext_people(server.base_url, *THREE)
    log.clear()
    for user_id in (ANN, BEN, CID):
        assert manager.get_context(user_id, query=QUERY) == ""
    [warning] = lines(log, logging.WARNING)
    assert "binding" not in warning
    server.clear()
    server.answer(None, answer(prepared("Pier seven.")))
    assert manager.get_context(CID, query=QUERY) == "Pier seven."
    assert lines(log, logging.INFO) == ["PowerContext recall is back; failed calls in between: 3."]


def test_each_request_has_the_scope_and_the_token_of_whom_it_is_for(powercontext_people: BuildPeople, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(None, answer(prepared("Pier seven.")))
    manager = powercontext_people(server.base_url, *THREE)
    for user_id in (CID, ANN, BEN, "canary-user-dan", "default", "", ANN.upper(), f"{BEN} "):
        manager.get_context(user_id, query=QUERY)
    sent = [((request.json or {})["scope_id"], request.headers["authorization"]) for request in server.requests_to(PREPARE)]
    assert sent == [(f"scp_canary_{name}", f"Bearer canary-token-{name}") for name in ("cid", "ann", "ben")]


def test_a_stranger_who_asks_first_is_told_of_without_an_id(powercontext_people: BuildPeople, powercontext_manager: BuildManager, log: pytest.LogCaptureFixture) -> None:
    manager = powercontext_people("http://127.0.0.1:9", *THREE)
    manager.get_context("canary-user-dan", query=QUERY)
    manager.get_context("canary-user-dan", query=QUERY)
    assert lines(log, logging.INFO) == ["A signed-in user whom POWERCONTEXT_DEERFLOW_BINDINGS_FILE does not name asked for memory, and nobody it names has so far. If this user is to have memory, the id there is wrong."]
    assert [line.split(":")[0] for line in lines(log, logging.WARNING)] == ["POWERCONTEXT_DEERFLOW_BINDINGS_FILE"]
    assert "owner_user_id of bindings 1-3 is not shaped like the ids in DeerFlow's user table" in lines(log, logging.WARNING)[0]
    assert "canary" not in log.text
