"""The main job, shown on a real PowerContext server: a new conversation gets back what another host stored. ``make demo`` runs it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

BACKEND = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from devhost.conversation import Conversation  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.manager import get_memory_manager  # noqa: E402

OWNER = "5f0c7f6e-alice"
MEMORY = "Order service convention: refund and money amounts are integer cents; backend tests use pytest."
REQUEST = "Add a refund calculation to the order service, following its conventions."


class Demo:
    """Runs the story and counts what did not happen as it should."""

    def __init__(self, server: RealServer, scope_id: str) -> None:
        self.server = server
        self.scope_id = scope_id
        self.failed = 0

    def check(self, claim: str, holds: bool) -> None:
        """Print a claim and whether it holds."""
        self.failed += not holds
        print(f"   {'ok    ' if holds else 'FAILED'} {claim}")

    def recalls_seen(self) -> int:
        """Return how many recalls the server counted."""
        return self.server.count_requests("prepare_context")

    def run(self) -> None:
        """Tell the story, step by step."""
        self.store_as_another_host()
        conversation = self.recall_as_the_owner()
        self.second_turn(conversation)
        self.other_callers()
        self.server_down()

    def store_as_another_host(self) -> None:
        """Store a convention through PowerContext's own API."""
        print(f"\n1. Another host stores a convention in the Scope:\n   {MEMORY}")
        self.server.remember(self.scope_id, "convention", MEMORY)

    def recall_as_the_owner(self) -> Conversation:
        """Open a new conversation of the owner."""
        print("\n2. The owner opens a new conversation. DeerFlow sends the model:")
        conversation = Conversation({"user_id": OWNER})
        messages, milliseconds = timed_turn(conversation, REQUEST)
        for message in messages:
            print("\n".join(f"   {message['role']:>9} | {line}" for line in message["content"].splitlines()))
        memory = messages[0]["content"]
        used = len(memory.removeprefix("<memory>\n").removesuffix("\n</memory>").encode())
        citation = next((line.strip() for line in memory.splitlines() if "Artifact:" in line), "")
        print(f"   citation: {citation}\n   budget: {used} of 8000 bytes    recall: {milliseconds:.0f} ms")
        self.check("the convention is in the model's messages, in one of the user's role", MEMORY in memory and messages[0]["role"] == "user")
        self.check("it is cited", citation.startswith('Artifact: family="atomic-memory", id="art_'))
        self.check("it is within its budget", used <= 8000)
        self.check("the server saw one recall", self.recalls_seen() == 1)
        return conversation

    def second_turn(self, conversation: Conversation) -> None:
        """Go on in the same conversation."""
        print("\n3. The second turn:")
        messages, _ = timed_turn(conversation, "Now write its test.")
        self.check("the memory is still there, once", sum(MEMORY in message["content"] for message in messages) == 1)
        self.check("the server was not asked again", self.recalls_seen() == 1)

    def other_callers(self) -> None:
        """Ask as somebody else, and as nobody."""
        print("\n4. Anyone else:")
        for name, context in {"another user": {"user_id": "bob"}, "a missing identity": {}}.items():
            messages, _ = timed_turn(Conversation(context), REQUEST)
            self.check(f"{name} gets no memory", [message["content"] for message in messages] == [REQUEST])
        self.check("no request was made for them", self.recalls_seen() == 1)

    def server_down(self) -> None:
        """Stop the server and chat on."""
        print("\n5. The server is stopped:")
        self.server.stop()
        messages, milliseconds = timed_turn(Conversation({"user_id": OWNER}), REQUEST)
        self.check(f"the conversation goes on without memory, after {milliseconds:.0f} ms", [message["content"] for message in messages] == [REQUEST])
        self.check("within the limit of 2 s", milliseconds < 2100)


def timed_turn(conversation: Conversation, text: str) -> tuple[list[dict[str, str]], float]:
    """Return a turn's messages and how long it took, in milliseconds."""
    started = time.perf_counter()
    messages = asyncio.run(conversation.turn(text))
    return messages, (time.perf_counter() - started) * 1000


def configure(folder: Path, server: RealServer, scope_id: str) -> PowerContextMemoryManager:
    """Configure the host as an operator would, and return its memory manager."""
    (folder / "config.yaml").write_text("memory:\n  enabled: true\n  manager_class: powercontext\n  mode: middleware\n", encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("POWERCONTEXT_DEERFLOW_")]:
        del os.environ[name]
    os.environ |= {
        "DEER_FLOW_CONFIG_PATH": str(folder / "config.yaml"),
        "POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url,
        "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
        "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
        "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
    }
    manager = get_memory_manager()
    assert isinstance(manager, PowerContextMemoryManager)
    return manager


def stop_on_termination(_number: int, _frame: FrameType | None) -> None:
    """Unwind on SIGTERM as on Ctrl-C, so that the server is stopped."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the demo; return 0 only if everything it shows was checked and held."""
    signal.signal(signal.SIGTERM, stop_on_termination)
    logging.basicConfig(level=logging.INFO, format="   log    %(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="powercontext-demo-") as name:
        print("Starting a real PowerContext server (SQLite, bearer token) on loopback ...", flush=True)
        with RealServer(Path(name), executable=executable) as server:
            version = server.request("GET", "/v1/server-info").json()["package_version"]
            print(f"PowerContext {version} is ready on port {server.port}, after {time.perf_counter() - started:.1f} s.")
            scope_id = server.create_scope("Order service")
            manager = configure(Path(name), server, scope_id)
            manager.warm()
            demo = Demo(server, scope_id)
            demo.run()
            manager.close()
    print(f"\n{'Everything above was checked.' if not demo.failed else f'{demo.failed} checks failed.'} {time.perf_counter() - started:.1f} s.")
    return 1 if demo.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nInterrupted; the server is stopped and its folder removed.")
        sys.exit(130)
