"""The backend inside a real DeerFlow: its factory, its middlewares, its routes. Elsewhere all of this skips."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from powercontext_support import OWNER, READY, Configure, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request

from deerflow.agents.memory import manager as contract
from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager

middleware = pytest.importorskip("deerflow.agents.middlewares.dynamic_context_middleware", reason="needs a real DeerFlow checkout")
app_config = pytest.importorskip("deerflow.config.app_config")
messages = pytest.importorskip("langchain_core.messages")

pytest_plugins = ("powercontext_support.fixtures",)
pytestmark = pytest.mark.no_auto_user

FORWARDS_QUERY = hasattr(contract, "context_query_kwargs")
needs_query = pytest.mark.skipif(not FORWARDS_QUERY, reason="this DeerFlow forwards no query to the backend, as it does since September 2026")

CONFIG = """\
models: []
sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
memory:
  enabled: true
  injection_enabled: true
  manager_class: powercontext
  mode: middleware
  backend_config: {backend_config}
"""

Host = Callable[..., Any]


@pytest.fixture
def host(powercontext_environment: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Return a function that configures this DeerFlow from a config.yaml and returns its AppConfig."""

    def configure(base_url: str, backend_config: str = "{}", **settings: str | None) -> Any:
        (tmp_path / "config.yaml").write_text(CONFIG.format(backend_config=backend_config))
        monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(tmp_path / "config.yaml"))
        monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "home"))
        powercontext_environment(base_url=base_url, **settings)
        app_config.reset_app_config()
        contract.reset_memory_manager()
        return app_config.get_app_config()

    yield configure
    contract.reset_memory_manager()
    app_config.reset_app_config()


def first_turn(config: Any, text: str, user_id: str | None = OWNER) -> list[Any]:
    """Return the messages that the real middleware makes of a conversation's first."""
    runtime = SimpleNamespace(context={"user_id": user_id} if user_id else {})
    state = {"messages": [messages.HumanMessage(content=text, id="m-1")]}
    update = asyncio.run(middleware.DynamicContextMiddleware(app_config=config).abefore_agent(state, runtime))
    return list((update or state)["messages"])


def memory_of(outbound: list[Any]) -> list[str]:
    """Return the contents of memory messages, which are of the user's role."""
    return [message.content for message in outbound if "<memory>" in str(message.content) and isinstance(message, messages.HumanMessage)]


def test_the_factory_finds_the_backend_by_its_folder_name(host: Host) -> None:
    host("http://127.0.0.1:9")
    manager = contract.get_memory_manager()
    assert type(manager) is PowerContextMemoryManager
    assert manager.backend_config.keys() == {"storage_path"}


@needs_query
def test_the_first_turn_receives_memory_as_a_message_of_the_user(host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    outbound = first_turn(host(server.base_url), "Add a refund calculation")
    assert memory_of(outbound) == ["<memory>\nRefund amounts are integer cents.\n</memory>"]
    assert len(server.requests) == 1


@needs_query
def test_the_second_turn_does_not_ask_again(host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    config = host(server.base_url)
    state = {"messages": [*first_turn(config, "Add a refund calculation"), messages.AIMessage("Done."), messages.HumanMessage("Test it.", id="m-2")]}
    runtime = SimpleNamespace(context={"user_id": OWNER})
    assert asyncio.run(middleware.DynamicContextMiddleware(app_config=config).abefore_agent(state, runtime)) is None
    assert len(server.requests) == 1


@needs_query
def test_fail_closed_stops_the_run_within_the_hosts_five_seconds(host: Host, powercontext_bytes: StartBytes) -> None:
    def silent(request: Request, peer: Peer) -> None:
        peer.hang()

    config = host(powercontext_bytes(silent).base_url, "{failure_policy: {read: fail_closed}}", recall_timeout_seconds="1.0")
    started = time.monotonic()
    with pytest.raises(contract.MemoryManagerError):
        first_turn(config, "Add a refund calculation")
    assert time.monotonic() - started < 5.0


@pytest.mark.skipif(FORWARDS_QUERY, reason="this DeerFlow forwards the query")
def test_a_host_that_forwards_no_query_gets_no_memory_and_is_told_why(host: Host, powercontext_http: StartHTTP, caplog: pytest.LogCaptureFixture) -> None:
    server = powercontext_http(READY)
    with caplog.at_level(logging.INFO):
        assert memory_of(first_turn(host(server.base_url), "Add a refund calculation")) == []
    assert "Recall needs a DeerFlow that forwards the user's request" in caplog.text
    assert server.requests == []


@pytest.mark.parametrize("user_id", [None, "", "default", "u-2"])
def test_a_missing_identity_becomes_default_and_recalls_nothing(user_id: str | None, host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    assert memory_of(first_turn(host(server.base_url), "Add a refund calculation", user_id)) == []
    assert server.requests == []


def test_a_server_that_is_down_does_not_stop_a_run(host: Host) -> None:
    outbound = first_turn(host("http://127.0.0.1:9"), "Add a refund calculation")
    assert outbound[-1].content == "Add a refund calculation"
    assert memory_of(outbound) == []


def test_turns_and_compaction_send_nothing(host: Host, powercontext_http: StartHTTP) -> None:
    memory_middleware = pytest.importorskip("deerflow.agents.middlewares.memory_middleware")
    hook = pytest.importorskip("deerflow.agents.memory.summarization_hook")
    server = powercontext_http(READY)
    config = host(server.base_url)
    transcript = [messages.HumanMessage("Remember my address.", id="m-1"), messages.AIMessage("Noted.", id="m-2")]
    runtime = SimpleNamespace(context={"user_id": OWNER, "thread_id": "t-1"})
    turn = memory_middleware.MemoryMiddleware(memory_config=config.memory)
    asyncio.run(turn.aafter_agent({"messages": transcript}, runtime))
    event = SimpleNamespace(thread_id="t-1", messages_to_summarize=transcript, agent_name=None, user_id=OWNER, runtime=runtime)
    flush = getattr(hook, "amemory_flush_hook", None)
    if flush is None:
        hook.memory_flush_hook(event)
    else:
        asyncio.run(flush(event))
    assert server.requests == []


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/memory"), ("GET", "/api/memory/export"), ("DELETE", "/api/memory"), ("POST", "/api/memory/reload")])
def test_the_memory_routes_answer_501(method: str, path: str, host: Host) -> None:
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    router = pytest.importorskip("app.gateway.routers.memory").router
    host("http://127.0.0.1:9")
    app = fastapi.FastAPI()
    app.include_router(router)
    with testclient.TestClient(app) as client:
        response = client.request(method, path)
    assert response.status_code == 501
    assert "PowerContextMemoryManager" in response.json()["detail"]


def test_warm_up_and_shutdown_take_the_hosts_road(host: Host) -> None:
    host("http://127.0.0.1:9")
    manager = contract.get_memory_manager()
    assert manager.warm() is None
    assert manager.shutdown_flush(1.0) is True
    manager.close()
    assert manager.get_context(OWNER) == ""
