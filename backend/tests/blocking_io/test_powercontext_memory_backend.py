"""The async methods of the PowerContext backend never block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import pytest
from powercontext_support import OWNER, READY, SCOPE, BuildManager, StartHTTP
from powercontext_support.replies import Reply, answer, record, remembered

pytest_plugins = ("powercontext_support.fixtures",)


@pytest.fixture
def gate() -> Iterator[AbstractContextManager[Any]]:
    """Return the gate that finds blocking calls. A DeerFlow checkout has closed its own around every test of this folder."""
    if find_spec("support") is not None:
        yield nullcontext()
        return
    blockbuster = pytest.importorskip("blockbuster")
    yield blockbuster.blockbuster_ctx()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the gate leaves the socket it stopped open
def test_the_gate_finds_a_blocking_call(gate: AbstractContextManager[Any], powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    manager = powercontext_manager(powercontext_http(READY).base_url, {"failure_policy": {"read": "fail_closed"}})

    async def block() -> str:
        return manager.get_context(OWNER, query="refund")

    with gate, pytest.raises(RuntimeError, match="PowerContext recall failed: BlockingError"):
        asyncio.run(block())


def test_async_recall_and_add_do_not_block(gate: AbstractContextManager[Any], powercontext_manager: BuildManager, powercontext_http: StartHTTP) -> None:
    manager = powercontext_manager(powercontext_http(READY).base_url)

    async def use() -> str:
        await manager.aadd("t-1", [], user_id=OWNER)
        manager.add_nowait("t-1", [], user_id=OWNER)  # the host calls it on the event loop
        return await manager.aget_context(OWNER, query="refund")

    with gate:
        assert asyncio.run(use()) == "Refund amounts are integer cents."


def test_no_tool_blocks(gate: AbstractContextManager[Any], powercontext_environment: Any, powercontext_http: StartHTTP) -> None:
    plugins = pytest.importorskip("deerflow_extension_api.plugins", reason="this DeerFlow has no plugin tools")
    auth = pytest.importorskip("deerflow_extension_api.auth")
    from deerflow.agents.memory.backends.powercontext.remember_tool import install

    citation: dict[str, Any] = {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}

    def choose(request: Any) -> Reply:
        if request.path.endswith("/state"):
            return answer({"artifact": citation, "state": "active", "state_version": 0})
        if request.path.endswith("/lifecycle"):
            return answer({"changed": True, "records": [{"artifact": citation, "state": "forgotten", "state_version": 1}]})
        if "/revisions/" in request.path or request.method == "PUT":
            revision = {"revision": 2, "content": {"kind": "fact", "text": "New."}} if request.method == "PUT" else {"content": {"kind": "fact", "text": "Old."}}
            return answer({"scope_id": SCOPE} | citation | revision)
        return answer({"hits": [], "results": []} if request.path.endswith("search") else remembered(record("The gate stays shut.")))

    server = powercontext_http()
    server.decide(None, choose)
    contributions: list[Any] = []

    class Registry:
        def plugin(self, contribution: Any) -> bool:
            contributions.append(contribution)
            return True

    powercontext_environment(base_url=server.base_url)
    install(Registry(), {})
    tools = {tool.name: tool for tool in contributions[0].tools}
    context = plugins.ToolContext(principal=auth.ExtensionPrincipal(user_id=OWNER), settings={}, thread_id="t-1")
    with gate:
        assert asyncio.run(tools["remember"].handler({"text": "The gate stays shut.", "kind": "fact"}, context))["outcome"] == "saved"
        assert asyncio.run(tools["recall"].handler({"query": "gate"}, context)) == {"memories": [], "more": False}
        assert asyncio.run(tools["correct"].handler({"citation": citation, "text": "New."}, context))["outcome"] == "corrected"
        assert asyncio.run(tools["forget"].handler({"citation": citation}, context))["outcome"] == "forgotten"
