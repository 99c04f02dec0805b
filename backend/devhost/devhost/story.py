"""What every story of the demo stands on: a real server behind a relay that sees each request, a host set up for two people. And its end."""

from __future__ import annotations

import io
import logging
import os
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import NoReturn

from powercontext_support.real_server import RealServer, find_executable
from powercontext_support.relay import Relay

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager, bind
from deerflow.agents.memory.manager import get_memory_manager

from .conversation import Conversation
from .interrupt import Calls, Interrupt
from .teller import Teller

OWNER = "5f0c7f6e-40f2-4f6e-9a51-0a11ce5e7b1d"
ASKED = "Remember this for the order service: money amounts are integer cents; use pytest for backend tests."
# What a model makes of it that follows the tool's description.
SAVED = "Order service conventions: money amounts such as prices, totals and refunds are integer cents; backend tests use pytest."
FROM_ANOTHER_CLIENT = "Order service decision: a refund is calculated from the captured amount, never from the list price."
CORRECTED = SAVED.replace("integer cents", "decimals with two places")
COLLEAGUE = "9d1b6a52-3c0e-4a7b-8f15-2f9a6f0c4e88"
COLLEAGUES = "Order service convention: every refund calculation is logged with the name of its author."
STRANGERS: dict[str, dict[str, str]] = {"another user": {"user_id": "bob"}, "a missing identity": {}, "`default`": {"user_id": "default"}}


class Story(ABC):
    """A story, told part by part. Each part checks what it shows."""

    def __init__(self, server: RealServer, relay: Relay, scope_id: str, calls: Calls, teller: Teller) -> None:
        self.server, self.relay, self.scope_id, self.calls, self.teller = server, relay, scope_id, calls, teller
        self.check = teller.check

    @abstractmethod
    def run(self) -> None:
        """Tell it."""

    def turn(self, conversation: Conversation, text: str) -> tuple[list[dict[str, str]], float]:
        """Return a turn's messages and how long it took, in milliseconds."""
        started = time.perf_counter()
        messages = self.calls.run(conversation.turn(text))
        return messages, (time.perf_counter() - started) * 1000

    def stored(self, text: str) -> int:
        """Return how often the server has ``text`` for the owner, asking it directly."""
        body = {"scope_id": self.scope_id, "limit": 50}
        entries = self.server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()["entries"]
        return [entry["text"] for entry in entries].count(text)

    def stop_the_server(self) -> None:
        """Stop it, and the relay before it."""
        self.server.stop()
        self.relay.__exit__(None, None, None)


def _configure(folder: Path, config: str, base_url: str, token: str, scope_id: str) -> PowerContextMemoryManager:
    """Configure the host as an operator would, for two people, and return its memory manager."""
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("POWERCONTEXT_DEERFLOW_")]:
        del os.environ[name]
    os.environ |= {
        "DEER_FLOW_CONFIG_PATH": str(folder / "config.yaml"),
        "POWERCONTEXT_DEERFLOW_BASE_URL": base_url,
        "POWERCONTEXT_DEERFLOW_BINDINGS_FILE": str(folder / "bindings.json"),
        "POWERCONTEXT_DEERFLOW_TOKEN": token,
    }
    for arguments in ([OWNER, "--scope", scope_id], [COLLEAGUE]):
        with redirect_stdout(io.StringIO()):
            code = bind.main(["add", *arguments])
        assert code == 0, "bind failed"
    manager = get_memory_manager()
    assert isinstance(manager, PowerContextMemoryManager)
    return manager


def tell(story: type[Story], config: str, command: str) -> int:
    """Tell ``story`` on a host with this config.yaml; return 0 only if everything it shows was checked and held.

    Args:
        story: The story.
        config: The host's config.yaml.
        command: How one starts it.
    """
    interrupt = Interrupt()
    teller = Teller(command)
    logging.basicConfig(level=logging.INFO if teller.verbose else logging.ERROR, format="   log            %(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="powercontext-demo-") as name:
        print("Real here: the PowerContext server, its store, HTTP, and the backend. Scripted: the model and")
        print("what the owner says. DeerFlow is a small stand-in (backend/devhost).")
        print("Starting the server (SQLite, bearer token) on this machine ...", flush=True)
        with RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay, Calls(interrupt) as calls:
            version = server.request("GET", "/v1/server-info").json()["package_version"]
            print(f"PowerContext {version} is ready on port {server.port}, after {time.perf_counter() - started:.1f} s.")
            scope_id = server.create_scope("Order service")
            manager = _configure(Path(name), config, relay.base_url, server.token, scope_id)
            manager.warm()
            story(server, relay, scope_id, calls, teller).run()
            manager.close()
    teller.end(time.perf_counter() - started)
    return 1 if teller.failed else 0


def end_with(main: Callable[[], int]) -> NoReturn:
    """Run ``main`` and end the process with the status it returns, or with 130 and one line if it is interrupted."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nInterrupted; the server is stopped and its folder removed.")
        sys.exit(130)
