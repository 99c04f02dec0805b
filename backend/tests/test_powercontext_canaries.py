"""Nothing private shows: every operation in every fault mode, with all loggers at DEBUG.

Private are the token, the Scope, the owner, the query, the text to remember, the server's words and its address. They may show in no log,
exception, result, ``repr``, ``vars``, dump or pickle.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from powercontext_support import OWNER, READY, SCOPE, TOKEN, Configure, binding
from powercontext_support.byte_server import ByteServer, always
from powercontext_support.faults import FAULTS, Fault, answering
from powercontext_support.replies import Reply, answer, prepared

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.api.client import PowerContextClient
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main
from deerflow.agents.memory.backends.powercontext.remember_tool import install
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("yaml")

SERVER_TEXT = "canary-of-the-server"
QUERY = "canaryofthequery"
TEXT = "canary of the text to remember"
CITATION = {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}
LIMIT = 0.15


def sending(raw: bytes) -> Fault:
    @contextmanager
    def fault() -> Iterator[str]:
        with ByteServer(always(raw)) as server:
            yield server.base_url

    return fault


RECORD = {"artifact": {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}, "kind": SERVER_TEXT, "text": SERVER_TEXT, "state": SERVER_TEXT}
CANARIES: dict[str, Fault] = {
    "headers": answering(Reply(200, b"{}", {"X-Text": SERVER_TEXT, "Set-Cookie": SERVER_TEXT})),
    "request id": answering(Reply(500, READY.body, {"X-PowerContext-Request-ID": SERVER_TEXT})),
    "reason phrase": sending(READY.raw().replace(b"200 X", f"503 {SERVER_TEXT}".encode())),
    "status line": sending(f"HTTP/1.1 {SERVER_TEXT}\r\n\r\n".encode()),
    "error envelope": answering(answer({"error": {"code": SERVER_TEXT, "message": SERVER_TEXT, "details": {"x": SERVER_TEXT}}}, 500)),
    "wrong schema": answering(answer(prepared(SERVER_TEXT, schema=SERVER_TEXT))),
    "wrong count": answering(answer(prepared(SERVER_TEXT, content_bytes=1))),
    "redirect": answering(Reply(307, b"", {"Location": f"https://{SERVER_TEXT}.example.com/"})),
    "recalled text": answering(answer(prepared(SERVER_TEXT))),
    "found text": answering(answer({"hits": [{"memory": RECORD}], "status": SERVER_TEXT})),
    "stored text": answering(answer({"changed": True, "records": [RECORD]})),
    "version": answering(answer({"product": SERVER_TEXT, "package_version": SERVER_TEXT, "search_modes": [SERVER_TEXT]})),
}
MODES = CANARIES | {name: fault for name, fault in FAULTS.items() if "endless" not in name}


class Shown:
    """Collects everything that could be seen of an object or an exception."""

    def __init__(self) -> None:
        self.text = ""

    def of(self, thing: Any) -> None:
        """Look at ``thing`` from all sides."""
        self.text += f" {thing!r} {thing}"
        with suppress(TypeError):
            self.text += f" {vars(thing)!r}"
        with suppress(Exception):
            self.text += f" {copy.deepcopy(thing)!r}"
        with suppress(Exception):
            self.text += f" {pickle.dumps(thing)!r}"
        for dump in ("model_dump", "model_dump_json"):
            if hasattr(thing, dump) and type(thing).__name__ != "PreparedContext":
                self.text += f" {getattr(thing, dump)()!r}"
        self.text += f" {getattr(thing, '__pydantic_private__', None)!r}"

    def call(self, operation: Callable[[], Any]) -> Any:
        """Call ``operation``; look at what it raises, with all that hangs on it. What it returns is the caller's to look at."""
        try:
            return operation()
        except Exception as error:
            self.of(error)
            self.text += "".join(traceback.format_exception(error))
            for chained in (error.__cause__, error.__context__):
                self.of(chained)
            return None


@pytest.mark.parametrize("name", MODES)
def test_nothing_private_shows(name: str, powercontext_environment: Configure, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown()
    (tmp_path / "config.yaml").write_text("memory: {manager_class: powercontext}")
    with MODES[name]() as base_url, caplog.at_level(logging.DEBUG):
        powercontext_environment(base_url=base_url, recall_timeout_seconds=str(LIMIT), remember_timeout_seconds=str(LIMIT))
        use_the_client(shown)
        use_the_manager(shown)
        use_the_tool(shown)
        shown.call(lambda: main(["--config", str(tmp_path / "config.yaml")]))
    shown.of(load_settings())
    printed = capsys.readouterr()
    everything = shown.text + caplog.text + repr([vars(record) for record in caplog.records]) + printed.out + printed.err
    private = {TOKEN, SCOPE, OWNER, QUERY, TEXT, SERVER_TEXT, "Server text"}
    assert {secret for secret in private if secret in everything} == set()
    log = caplog.text + repr([vars(record) for record in caplog.records])
    assert base_url.split("//")[1] not in log


def use_the_client(shown: Shown) -> None:
    client = PowerContextClient(load_settings())
    shown.call(lambda: client.prepare_context(binding(), QUERY, deadline=Deadline.after(LIMIT)))
    shown.of(shown.call(lambda: client.get_readiness(deadline=Deadline.after(LIMIT))))
    for ask in (client.get_server_info, client.get_capabilities, client.get_scope):
        shown.of(shown.call(partial(ask, binding(), deadline=Deadline.after(LIMIT))))
    shown.of(binding())
    shown.text += repr(shown.call(lambda: client.search_memory(binding(), TEXT, deadline=Deadline.after(LIMIT))))  # the hits themselves are memories
    shown.of(shown.call(lambda: client.remember_memory(binding(), "fact", TEXT, deadline=Deadline.after(LIMIT))))
    saver = Saver(load_settings())
    shown.of(saver.save(binding(), "fact", TEXT))
    shown.of(saver)
    shown.of(client)
    client.close()


def use_the_manager(shown: Shown) -> None:
    manager = PowerContextMemoryManager(backend_config={"failure_policy": {"read": "fail_closed"}})
    shown.call(lambda: manager.get_context(OWNER, query=QUERY))
    shown.call(lambda: asyncio.run(manager.aget_context(OWNER, query=QUERY)))
    manager.warm()
    shown.of(manager)
    manager.close()


def use_the_tool(shown: Shown) -> None:
    if pytest.importorskip("importlib.util").find_spec("deerflow_extension_api.plugins") is None:
        return
    contributions: list[Any] = []

    def accept(contribution: Any) -> bool:
        contributions.append(contribution)
        return True

    install(SimpleNamespace(plugin=accept), {})
    tools = {tool.name: tool for tool in contributions[0].tools}
    context = SimpleNamespace(principal=SimpleNamespace(user_id=OWNER))

    def call(name: str, **arguments: object) -> Any:
        return shown.call(lambda: asyncio.run(tools[name].handler(arguments, context)))

    shown.of(call("remember", text=TEXT, kind="fact"))
    call("recall", query=QUERY)  # what it returns is memories
    shown.of(call("correct", citation=CITATION, text=TEXT))
    shown.of(call("forget", citation=CITATION))
    shown.of(contributions[0])
