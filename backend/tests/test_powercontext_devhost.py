"""The backend in a conversation of the stand-in host: what the model is sent, turn by turn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, READY, BuildManager, Configure, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request
from powercontext_support.replies import PREPARE, answer

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError

conversation = pytest.importorskip("devhost.conversation", reason="the stand-in host is not part of a DeerFlow checkout")
contract = pytest.importorskip("deerflow.agents.memory.manager")

pytest_plugins = ("powercontext_support.fixtures",)

MEMORY = {"role": "user", "name": "memory", "content": "<memory>\nRefund amounts are integer cents.\n</memory>"}

Host = Callable[..., None]


@pytest.fixture
def host(powercontext_environment: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets up a host with this config.yaml and this server."""

    def set_up(base_url: str, memory: str = "{manager_class: powercontext}", **changes: str | None) -> None:
        (tmp_path / "config.yaml").write_text(f"memory: {memory}\n")
        monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(tmp_path / "config.yaml"))
        powercontext_environment(base_url=base_url, **changes)
        contract.reset_memory_manager()

    yield set_up
    with contextlib.suppress(PowerContextConfigurationError):
        contract.get_memory_manager().close()
    contract.reset_memory_manager()


def turn(chat: Any, text: str) -> list[dict[str, str]]:
    return list(asyncio.run(chat.turn(text)))


def test_the_factory_builds_the_backend_by_its_folder_name(host: Host) -> None:
    host("http://127.0.0.1:9", "{manager_class: powercontext, mode: middleware, backend_config: {failure_policy: {read: fail_closed}}}")
    manager = contract.get_memory_manager()
    assert isinstance(manager, PowerContextMemoryManager)
    assert manager is contract.get_memory_manager()
    assert Path(manager.backend_config["storage_path"]).is_absolute()
    assert manager.read_failures_are_fatal is True


def test_the_first_turn_receives_memory_as_a_message_of_the_user(host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    host(server.base_url)
    chat = conversation.Conversation({"user_id": OWNER})
    assert turn(chat, "Add a refund") == [MEMORY, {"role": "user", "content": "Add a refund"}]
    assert server.requests_to(PREPARE)[0].json["query"] == "refund"


def test_the_second_turn_does_not_ask_again(host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    host(server.base_url)
    chat = conversation.Conversation({"user_id": OWNER})
    turn(chat, "Add a refund")
    assert turn(chat, "And a test") == [MEMORY, {"role": "user", "content": "Add a refund"}, {"role": "user", "content": "And a test"}]
    assert [request.path for request in server.requests].count(PREPARE) == 1


@pytest.mark.parametrize("context", [{}, {"user_id": ""}, {"user_id": "default"}, {"user_id": "u-2"}])
def test_a_missing_identity_becomes_default_and_recalls_nothing(context: dict[str, str], host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    host(server.base_url)
    assert turn(conversation.Conversation(context), "Add a refund") == [{"role": "user", "content": "Add a refund"}]
    assert server.requests == []


def test_a_silent_server_costs_the_limit_and_no_more(host: Host, powercontext_bytes: StartBytes) -> None:
    def silent(request: Request, peer: Peer) -> None:
        peer.hang()

    host(powercontext_bytes(silent).base_url, recall_timeout_seconds="0.5")
    started = time.monotonic()
    assert turn(conversation.Conversation({"user_id": OWNER}), "Add a refund") == [{"role": "user", "content": "Add a refund"}]
    assert time.monotonic() - started < 5  # it never answers


def test_fail_closed_stops_the_run(host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer({}, 503))
    host(server.base_url, "{manager_class: powercontext, backend_config: {failure_policy: {read: fail_closed}}}")
    with pytest.raises(contract.MemoryReadError, match="PowerContext recall failed: PowerContextUnavailableError"):
        turn(conversation.Conversation({"user_id": OWNER}), "Add a refund")


@pytest.mark.parametrize("memory", ["{manager_class: powercontext, injection_enabled: false}", "{manager_class: powercontext, enabled: false}"])
def test_a_host_with_memory_off_makes_no_request(memory: str, host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    host(server.base_url, memory)
    assert turn(conversation.Conversation({"user_id": OWNER}), "Add a refund") == [{"role": "user", "content": "Add a refund"}]
    assert server.requests == []


@pytest.mark.parametrize(
    ("memory", "changes"),
    [
        ("{manager_class: powercontext}", {"owner_user_id": "default"}),
        ("{manager_class: powercontext, backend_config: {scope_id: scp_x}}", {}),
    ],
)
def test_a_wrong_configuration_recalls_nothing_and_falls_back_to_nothing(memory: str, changes: dict[str, str], host: Host, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    host(server.base_url, memory, **changes)
    for _ in range(2):
        assert turn(conversation.Conversation({"user_id": OWNER}), "Add a refund") == [{"role": "user", "content": "Add a refund"}]
    assert server.requests == []


def test_without_a_query_keyword_of_the_host_nothing_is_recalled(powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    """DeerFlow before September 2026 calls ``get_context(user_id=..., agent_name=...)``."""
    server = powercontext_http(READY)
    assert powercontext_manager(server.base_url).get_context(user_id=OWNER, agent_name=None) == ""
    assert server.requests == []
