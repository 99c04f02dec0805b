"""``mode: tool`` inside a real DeerFlow: its own memory tools and its memory page's requests. Elsewhere all of this skips."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from powercontext_support import OWNER, Configure
from powercontext_support.real_server import RealServer

from deerflow.agents.memory import manager as contract

tools = pytest.importorskip("deerflow.agents.memory.tools", reason="needs a real DeerFlow checkout")
app_config = pytest.importorskip("deerflow.config.app_config")
user_context = pytest.importorskip("deerflow.runtime.user_context")

pytest_plugins = ("powercontext_support.fixtures",)
pytestmark = pytest.mark.no_auto_user

CONFIG = """\
models: []
sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
memory:
  enabled: true
  manager_class: powercontext
  mode: tool
"""
TEXT = "Order service convention: refund amounts are integer cents."

Use = Callable[..., dict[str, Any]]


@pytest.fixture(params=["1.4.1", "1.2.0"])
def host(request: pytest.FixtureRequest, powercontext_servers: Callable[[str], RealServer], powercontext_environment: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Configure this DeerFlow for a new Scope of a real server."""
    server = powercontext_servers(request.param)
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(tmp_path / "config.yaml"))
    monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "home"))
    powercontext_environment(base_url=server.base_url, scope_id=server.create_scope(f"host {uuid4()}"), token=server.token, recall_timeout_seconds="4", remember_timeout_seconds="9")
    app_config.reset_app_config()
    contract.reset_memory_manager()
    app_config.get_app_config()
    yield powercontext_environment
    contract.get_memory_manager().close()
    contract.reset_memory_manager()
    app_config.reset_app_config()


@pytest.fixture
def use(host: Configure) -> Use:
    """Return a function that calls one of DeerFlow's memory tools as a run of a user does."""
    by_name = {tool.name: tool for tool in tools.get_memory_tools()}

    def call(name: str, user_id: str | None = OWNER, **arguments: Any) -> dict[str, Any]:
        runtime = SimpleNamespace(context={"user_id": user_id} if user_id else {}, server_info=None)
        return dict(json.loads(by_name[name].func(runtime, **arguments)))

    return call


def test_the_models_tools_save_find_correct_and_forget(use: Use) -> None:
    added = use("memory_add", content=TEXT, category="convention")
    assert added["status"] == "added"
    found = use("memory_search", query="How are refund amounts stored?")
    assert [item["content"] for item in found["results"]] == [TEXT]
    identifier = found["results"][0]["id"]
    assert identifier == added["fact_id"]
    assert use("memory_update", fact_id=identifier, content="Refund amounts are whole euros.") == {"fact_id": identifier, "status": "updated"}
    [now] = use("memory_search", query="refund amounts")["results"]
    assert now["content"] == "Refund amounts are whole euros."
    assert use("memory_delete", fact_id=now["id"]) == {"fact_id": now["id"], "status": "deleted"}
    assert use("memory_search", query="refund amounts") == {"results": [], "count": 0}


def test_what_was_there_before_and_what_is_gone_is_said(use: Use) -> None:
    identifier = use("memory_add", content=TEXT)["fact_id"]
    assert use("memory_add", content=f" {TEXT.upper()} ") == {"error": "Duplicate fact"}
    use("memory_delete", fact_id=identifier)
    assert use("memory_delete", fact_id=identifier) == {"error": f"Fact not found: {identifier}"}


@pytest.mark.parametrize("user_id", ["u-2", None])
def test_anybody_else_has_no_memory(user_id: str | None, use: Use) -> None:
    use("memory_add", content=TEXT)
    assert use("memory_search", user_id, query="refund amounts") == {"results": [], "count": 0}
    assert use("memory_add", user_id, content="x")["error"] == "Not saved: no memory is set up for this user."


@pytest.fixture
def page(host: Configure) -> Iterator[Any]:
    """Return a client of DeerFlow's memory page, signed in as the owner."""
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    router = pytest.importorskip("app.gateway.routers.memory").router
    app = fastapi.FastAPI()

    async def sign_in(request: Any, call_next: Any) -> Any:
        token = user_context.set_current_user(SimpleNamespace(id=request.headers.get("x-user", OWNER)))
        try:
            return await call_next(request)
        finally:
            user_context.reset_current_user(token)

    app.middleware("http")(sign_in)
    app.include_router(router)
    with testclient.TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_the_page_lists_adds_edits_and_deletes(page: Any) -> None:
    assert page.get("/api/memory").json()["facts"] == []
    [added] = page.post("/api/memory/facts", json={"content": TEXT, "category": "convention", "confidence": 0.9}).json()["facts"]
    assert (added["content"], added["category"]) == (TEXT, "convention")
    assert page.post("/api/memory/facts", json={"content": TEXT, "category": "convention"}).status_code == 409
    [edited] = page.patch(f"/api/memory/facts/{added['id']}", json={"content": "Refunds are in euros.", "category": "fact"}).json()["facts"]
    assert (edited["content"], edited["category"]) == ("Refunds are in euros.", "fact")
    assert page.patch(f"/api/memory/facts/{added['id']}", json={"content": "Refunds are in dollars."}).status_code == 409
    assert page.get("/api/memory/export").json()["facts"][0]["content"] == "Refunds are in euros."
    assert page.post("/api/memory/reload").status_code == 200
    assert page.get("/api/memory", headers={"x-user": "u-2"}).json()["facts"] == []
    assert page.delete(f"/api/memory/facts/{edited['id']}").json()["facts"] == []
    assert page.delete(f"/api/memory/facts/{edited['id']}").status_code == 404


def test_the_page_can_neither_empty_nor_import(page: Any) -> None:
    assert page.delete("/api/memory").status_code == 501
    assert page.post("/api/memory/import", json={}).status_code == 501


def test_the_page_shows_nothing_of_the_binding(page: Any) -> None:
    for path in ("/api/memory/config", "/api/memory/status"):
        answer = page.get(path)
        assert answer.status_code == 200
        assert "127.0.0.1" not in answer.text
        assert "scp_" not in answer.text
