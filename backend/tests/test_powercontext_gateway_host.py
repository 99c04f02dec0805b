"""Whole runs in a real DeerFlow: its Gateway in a process of its own, over HTTP, with a stub model. Elsewhere all of this skips."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest
from powercontext_support.byte_server import Request
from powercontext_support.gateway import Gateway, Person
from powercontext_support.real_server import RealServer
from powercontext_support.relay import Passage, Relay
from powercontext_support.replies import Reply

pytest.importorskip("app.gateway", reason="needs a real DeerFlow checkout")

pytest_plugins = ("powercontext_support.fixtures",)
pytestmark = pytest.mark.no_auto_user

TEXT = "Order service convention: refund amounts are integer cents."
NOT_READ = "Nothing was done: the memory server did not answer as it should; try again later."
NOT_FOUND_OUT = "Not looked up, so it is not known what is remembered: the memory server "

PAGE = [
    ("GET", "/api/memory", None),
    ("GET", "/api/memory/export", None),
    ("GET", "/api/memory/status", None),
    ("POST", "/api/memory/reload", None),
    ("POST", "/api/memory/facts", {"content": TEXT}),
    ("PATCH", "/api/memory/facts/atomic-memory@art_1@1", {"content": TEXT}),
    ("DELETE", "/api/memory/facts/atomic-memory@art_1@1", None),
    ("DELETE", "/api/memory", None),
    ("POST", "/api/memory/import", {}),
]


@dataclass(frozen=True)
class Host:
    """A Gateway with two users, the owner of a new Scope and another, and a relay before the memory server."""

    gateway: Gateway
    relay: Relay
    owner: Person
    other: Person
    private: tuple[str, ...]

    def assert_that_nothing_private_was_logged(self) -> None:
        log = self.gateway.log.read_text(encoding="utf-8")
        assert "PowerContext memory" in log
        assert [word for word in self.private if word in log] == []


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Return a Gateway whose users are signed up; skip where DeerFlow with a backend of its own does not run."""
    with Gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        try:
            gateway.start(manager_class="noop", mode="middleware")
            for name in ("owner", "other"):
                gateway.sign_up(name)
            said = gateway.sign_in("owner").say("hello")
        except (RuntimeError, httpx.HTTPError, KeyError) as error:
            pytest.skip(f"this DeerFlow's Gateway does not run here: {error!r}")
        assert said == "ok"
        yield gateway


@contextmanager
def started(gateway: Gateway, server: RealServer, mode: str = "tool") -> Iterator[Host]:
    """Start the Gateway for a new Scope of ``server``."""
    scope_id = server.create_scope(f"gateway {uuid4()}")
    with Relay(server.base_url) as relay:
        limits = {"recall_timeout_seconds": "4", "remember_timeout_seconds": "9"}
        settings = {"base_url": relay.base_url, "owner_user_id": gateway.ids["owner"], "scope_id": scope_id, "token": server.token}
        gateway.start(mode=mode, settings=settings | limits)
        yield Host(gateway, relay, gateway.sign_in("owner"), gateway.sign_in("other"), (*settings.values(), TEXT, "canary"))
        gateway.stop()


@pytest.fixture(params=["1.4.1", "1.2.0"])
def host(request: pytest.FixtureRequest, gateway: Gateway, powercontext_servers: Callable[[str], RealServer]) -> Iterator[Host]:
    with started(gateway, powercontext_servers(request.param)) as host:
        yield host


@pytest.fixture
def new_host(gateway: Gateway, powercontext_server: RealServer) -> Iterator[Host]:
    with started(gateway, powercontext_server) as host:
        yield host


def contents(found: dict[str, Any]) -> list[str]:
    return [item["content"] for item in found["results"]]


def always(passage: Passage, request: Request) -> Passage:
    return passage


def facts(response: httpx.Response) -> list[dict[str, Any]]:
    return list(response.raise_for_status().json()["facts"])


def test_what_one_conversation_saves_the_next_ones_find_correct_and_forget(host: Host) -> None:
    owner = host.owner
    assert owner.told(f"Remember: {TEXT}")["status"] == "added"
    assert contents(owner.told("What about refund amounts?")) == [TEXT]
    assert owner.told(f"Remember: {TEXT.upper()}") == {"error": "Duplicate fact"}
    assert owner.told("Correct refund amounts: Refund amounts are whole euros.")["status"] == "updated"
    assert contents(owner.told("What about refund amounts?")) == ["Refund amounts are whole euros."]
    assert owner.told("Forget refund amounts")["status"] == "deleted"
    assert owner.told("What about refund amounts?") == {"results": [], "count": 0}
    host.assert_that_nothing_private_was_logged()


def test_the_page_is_the_owners_and_shows_nothing_of_the_binding(host: Host) -> None:
    page, others, visitor = host.owner.page, host.other.page, host.gateway.visitor()
    [added] = facts(page.post("/api/memory/facts", json={"content": TEXT, "category": "convention", "confidence": 0.9}))
    assert (added["content"], added["category"], added["confidence"]) == (TEXT, "convention", 0.5)
    assert [[fact["content"] for fact in facts(page.get(path))] for path in ("/api/memory", "/api/memory/export")] == [[TEXT], [TEXT]]
    assert page.post("/api/memory/facts", json={"content": TEXT, "category": "convention"}).status_code == 409
    path = f"/api/memory/facts/{added['id']}"

    asked = len(host.relay.requests)
    assert facts(others.get("/api/memory")) == facts(others.get("/api/memory/export")) == []
    assert [others.patch(path, json={"content": "Mine."}).status_code, others.delete(path).status_code] == [404, 404]
    refused = others.post("/api/memory/facts", json={"content": TEXT})
    assert (refused.status_code, refused.json()["detail"]) == (400, "Memory fact content cannot be empty.")
    assert host.other.told(f"Remember: {TEXT}") == {"error": "Not saved: no memory is set up for this user."}
    assert host.other.told("What about refund amounts?") == {"results": [], "count": 0}
    assert {visitor.request(method, path, json=body).status_code for method, path, body in PAGE} <= {401, 403}
    assert len(host.relay.requests) == asked

    [edited] = facts(page.patch(path, json={"content": "Refunds are in euros.", "category": "fact", "confidence": 0.5}))
    assert (edited["content"], edited["category"]) == ("Refunds are in euros.", "fact")
    assert page.patch(path, json={"content": "Refunds are in dollars."}).status_code == 409
    shown = page.get("/api/memory/config").raise_for_status().text + page.get("/api/memory/status").raise_for_status().text
    assert [word for word in host.private if word in shown] == []
    assert [page.delete("/api/memory").status_code, page.post("/api/memory/import", json={}).status_code] == [501, 501]
    assert facts(page.delete(f"/api/memory/facts/{edited['id']}")) == []
    assert page.delete(f"/api/memory/facts/{edited['id']}").status_code == 404
    host.assert_that_nothing_private_was_logged()


def test_a_server_that_lies_or_is_gone_is_told_as_such(new_host: Host) -> None:
    owner, page = new_host.owner, new_host.owner.page
    owner.told(f"Remember: {TEXT}")
    for lie in (Passage(instead=Reply(200, body).raw()) for body in (b"<html>canary</html>", b'{"canary": []}')):
        new_host.relay.plan = partial(always, lie)
        assert owner.told("Remember: Backend tests use pytest.") == {"error": NOT_READ}
        assert str(owner.told("What about refund amounts?")["error"]).startswith(NOT_FOUND_OUT + "did not answer as it should")
        assert page.get("/api/memory").status_code == 500
    new_host.relay.stop()
    assert owner.told("Remember: Backend tests use pytest.") == {"error": NOT_READ}
    assert str(owner.told("What about refund amounts?")["error"]).startswith(NOT_FOUND_OUT + "cannot be reached")
    assert [page.request(method, path, json=body).status_code for method, path, body in PAGE] == [500] * 7 + [501] * 2
    assert [owner.say("hello"), new_host.other.say("hello")] == ["ok", "ok"]
    new_host.assert_that_nothing_private_was_logged()


def test_saves_that_a_silent_server_holds_do_not_hold_up_others(new_host: Host) -> None:
    written, saved = threading.Semaphore(0), list[dict[str, Any]]()

    def silent_to_writes(request: Request) -> Passage:
        if not request.path.endswith("/remember"):
            return Passage()
        written.release()
        return Passage(instead=b"x", delay_seconds=600)

    new_host.relay.plan = silent_to_writes
    saves = [threading.Thread(target=lambda number=number: saved.append(new_host.owner.told(f"Remember: Depot {number} opens at six."))) for number in range(2)]
    for save in saves:
        save.start()
    assert all(written.acquire(timeout=60) for _ in saves)
    assert new_host.other.say("hello") == "ok"
    assert saved == []  # they still wait: nobody waited for them
    for save in saves:
        save.join()
    assert [str(each["error"]).startswith("It is not known whether this was saved.") for each in saved] == [True, True]
    new_host.assert_that_nothing_private_was_logged()


def test_with_mode_middleware_the_page_is_unsupported_and_a_run_sends_nothing(gateway: Gateway, powercontext_server: RealServer) -> None:
    with started(gateway, powercontext_server, mode="middleware") as host:
        asked = len(host.relay.requests)
        for person in (host.owner, host.other):
            assert person.say("hello") == "ok"
            assert {person.page.request(method, path, json=body).status_code for method, path, body in PAGE} == {501}
        assert len(host.relay.requests) == asked
        host.assert_that_nothing_private_was_logged()
