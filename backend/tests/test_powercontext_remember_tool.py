"""The tool ``remember`` in the stand-in host: who may call it, what the model gets back, and what never shows."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, Configure, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request
from powercontext_support.real_server import RealServer
from powercontext_support.replies import SEARCH, Reply, answer, error, found, record, remembered

from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError
from deerflow.agents.memory.backends.powercontext.remember_tool import install

plugins = pytest.importorskip("devhost.plugins", reason="the stand-in host is not part of a DeerFlow checkout")

pytest_plugins = ("powercontext_support.fixtures",)

USE = "deerflow.agents.memory.backends.powercontext.remember_tool:install"
NAME = "ext_powercontext_remember_6d79c933d297"
TEXT = "Order service convention: refund amounts are integer cents."
SERVER_TEXT = "canary-of-the-server"
RECORD = record(TEXT, "convention")

LoadTool = Callable[..., Any]


def storing(request: Request, peer: Peer | None = None) -> Reply:
    """Find nothing and store everything."""
    return answer(found()) if request.path == SEARCH else answer(remembered(RECORD))


@pytest.fixture
def load_tool(powercontext_environment: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadTool:
    """Return a function that loads the plugin as the host does and returns the tool."""

    def load(base_url: str, **changes: str | None) -> Any:
        (tmp_path / "config.yaml").write_text(f'plugins: [{{use: "{USE}"}}]\n')
        monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(tmp_path / "config.yaml"))
        powercontext_environment(base_url=base_url, **changes)
        return plugins.tools_of(plugins.load_plugins())[NAME]

    return load


def call(tool: Any, context: dict[str, Any] | None = None, **arguments: Any) -> Any:
    return asyncio.run(plugins.call_tool(tool, arguments or {"text": TEXT, "kind": "convention"}, {"user_id": OWNER} if context is None else context))


def test_the_tool_has_its_namespaced_name(load_tool: LoadTool) -> None:
    assert hashlib.sha256(b"powercontext:remember").hexdigest()[:12] == "6d79c933d297"
    assert load_tool("http://127.0.0.1:9").name == "remember"


def test_a_save_on_a_real_server_is_saved_then_already_saved(load_tool: LoadTool, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("tool")
    tool = load_tool(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    first, second = call(tool), call(tool)
    assert (first.status, second.status) == ("success", "success")
    saved, again = json.loads(first.content), json.loads(second.content)
    assert saved["outcome"] == "saved"
    assert saved["citation"]["artifact_id"].startswith("art_")
    assert again == {"outcome": "already_saved", "citation": saved["citation"], "message": "This was saved before; nothing was added."}


@pytest.mark.parametrize("context", [{}, {"user_id": ""}, {"user_id": "default"}, {"user_id": "u-2"}, {"user_id": f" {OWNER}"}])
def test_anyone_but_the_owner_saves_nothing_and_causes_no_request(context: dict[str, str], load_tool: LoadTool, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer(found()))
    message = call(load_tool(server.base_url), context)
    assert (message.status, message.content) == ("error", "Not saved: this memory belongs to another user.")
    assert server.requests == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"text": TEXT}, "the kind must be one of fact, preference, decision, constraint, convention."),
        ({"text": TEXT, "kind": "note"}, "the kind must be one of fact, preference, decision, constraint, convention."),
        ({"text": TEXT, "kind": ["fact"]}, "the kind must be one of fact, preference, decision, constraint, convention."),
        ({"kind": "fact"}, "there is no text."),
        ({"text": None, "kind": "fact"}, "there is no text."),
        ({"text": 5, "kind": "fact"}, "the text must be one string."),
        ({"text": [TEXT], "kind": "fact"}, "the text must be one string."),
        ({"text": TEXT, "kind": "fact", "user_id": OWNER}, "give text and kind, and nothing else."),
        ({"text": TEXT, "kind": "fact", "scope_id": "x"}, "give text and kind, and nothing else."),
    ],
)
def test_wrong_arguments_are_refused_with_the_reason_and_without_a_request(arguments: dict[str, Any], sentence: str, load_tool: LoadTool, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer(found()))
    message = call(load_tool(server.base_url), **arguments)
    assert (message.status, message.content) == ("error", f"Not saved: {sentence}")
    assert server.requests == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "there is no text."),
        (" \n\u3000", "there is no text."),
        ("\u200b\ufeff \u00ad\x00", "there is no text."),
        ("\u3164\u2800\ufe0f", "there is no text."),
        ("退" * 2731, "the text has 8193 bytes, and at most 8192 can be saved; shorten it."),
        ("half \ud83d", "the text has half a character in it (a lone surrogate); write it again."),
    ],
)
def test_a_text_that_cannot_be_saved_is_explained(text: str, sentence: str, load_tool: LoadTool, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer(found()))
    message = call(load_tool(server.base_url), text=text, kind="fact")
    assert (message.status, message.content) == ("error", f"Not saved: {sentence}")
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (error(401, "unauthorized"), "the memory server refuses the access token; the operator has to check it."),
        (error(404, "scope_not_found"), "the memory server does not have the configured Scope; the operator has to check it."),
        (error(422, "invalid_request"), "the memory server does not accept it; the operator finds the reason in the log."),
        (error(503, "server_overloaded"), "the memory server is overloaded; it can be tried again in a moment."),
    ],
)
def test_a_refusal_is_one_plain_sentence(reply: Reply, sentence: str, load_tool: LoadTool, powercontext_http: StartHTTP) -> None:
    message = call(load_tool(powercontext_http(reply).base_url))
    assert (message.status, message.content) == ("error", f"Not saved: {sentence}")


def test_a_server_that_is_not_there_is_one_plain_sentence(load_tool: LoadTool) -> None:
    message = call(load_tool("http://127.0.0.1:9"))
    assert message.content == "Not saved: the memory server cannot be reached; it can be tried again later."


def test_a_lost_reply_is_unknown_and_asks_not_to_try_again(load_tool: LoadTool, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(lambda request, peer: None if request.path.endswith("remember") else storing(request, peer))
    message = call(load_tool(server.base_url))
    assert message.status == "success"
    assert json.loads(message.content) == {
        "outcome": "unknown",
        "citation": None,
        "message": "It is not known whether this was saved. Tell the user so, and do not try again: it may have been stored.",
    }


async def cancel_when(begun: threading.Event, tool: Any) -> None:
    """Call the tool, and cancel the call once ``begun`` is set; the loop goes on meanwhile."""
    save = asyncio.create_task(plugins.call_tool(tool, {"text": TEXT, "kind": "fact"}, {"user_id": OWNER}))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    save.cancel()
    with pytest.raises(asyncio.CancelledError):
        await save


def test_a_save_cancelled_before_its_write_writes_nothing_and_claims_nothing(load_tool: LoadTool, powercontext_bytes: StartBytes, caplog: pytest.LogCaptureFixture) -> None:
    looked_up, cancelled = threading.Event(), threading.Event()

    def find_late(request: Request, peer: Peer) -> Reply:
        looked_up.set()
        cancelled.wait(20)
        return storing(request, peer)

    server = powercontext_bytes(find_late)
    with caplog.at_level(logging.DEBUG):
        asyncio.run(cancel_when(looked_up, load_tool(server.base_url)))
        cancelled.set()
        wait_for_log(caplog, "PowerContext save, cancelled: NotSaved.")
    assert [request.path for request in server.requests] == ["/v1/memory/search"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_save_cancelled_during_a_write_that_never_ends_is_logged_as_unknown(load_tool: LoadTool, powercontext_bytes: StartBytes, caplog: pytest.LogCaptureFixture) -> None:
    written = threading.Event()

    def hang_in_write(request: Request, peer: Peer) -> Reply | None:
        if request.path == "/v1/memory/remember":
            written.set()
            peer.hang()
        return storing(request, peer)

    server = powercontext_bytes(hang_in_write)
    asyncio.run(cancel_when(written, load_tool(server.base_url, remember_timeout_seconds="0.5")))
    wait_for_log(caplog, "A save was cancelled after its write had begun; whether it is stored is unknown.")
    assert [request.path for request in server.requests] == ["/v1/memory/search", "/v1/memory/remember"]


def wait_for_log(caplog: pytest.LogCaptureFixture, line: str) -> None:
    until = time.monotonic() + 20
    while line not in caplog.messages:
        assert time.monotonic() < until, caplog.messages
        time.sleep(0.01)


def test_eight_stuck_saves_cost_a_stranger_on_the_hosts_pool_nothing(load_tool: LoadTool, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(lambda request, peer: peer.hang())
    tool = load_tool(server.base_url)

    async def stranger() -> tuple[str, list[bool]]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(6))
        saves = [asyncio.create_task(plugins.call_tool(tool, {"text": f"{TEXT} {number}", "kind": "fact"}, {"user_id": OWNER})) for number in range(8)]
        while len(server.requests) < 8:
            await asyncio.sleep(0.01)
        answered = await asyncio.to_thread(lambda: "served")
        done = [save.done() for save in saves]
        for save in saves:
            save.cancel()
        await asyncio.gather(*saves, return_exceptions=True)
        return answered, done

    assert asyncio.run(stranger()) == ("served", [False] * 8)


class August:
    """The registry of a DeerFlow without plugins."""


class Refusing:
    """A registry that takes no plugin."""

    def plugin(self, contribution: Any) -> bool:
        return False


@pytest.mark.parametrize("registry", [August(), Refusing()])
def test_a_host_without_plugin_tools_is_one_clear_error(registry: Any, powercontext_environment: Configure) -> None:
    with pytest.raises(PowerContextConfigurationError, match="This DeerFlow has no plugin tools"):
        install(registry, {})


def test_settings_in_the_plugins_yaml_are_error(powercontext_environment: Configure) -> None:
    with pytest.raises(PowerContextConfigurationError, match="must be empty") as caught:
        install(plugins.Registry(), {"scope_id": "scp_secret"})
    assert "scp_secret" not in str(caught.value)


def test_a_wrong_environment_stops_the_tool(powercontext_environment: Configure) -> None:
    powercontext_environment(owner_user_id="default")
    registry = plugins.Registry()
    with pytest.raises(PowerContextConfigurationError, match="OWNER_USER_ID"):
        install(registry, {})
    assert registry.contributions == {}
