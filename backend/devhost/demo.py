"""The main job, shown on a real PowerContext server: what is remembered in one conversation is there in the next. ``make demo`` runs it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

BACKEND = Path(__file__).resolve().parents[1]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main: there is nothing to stop yet
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from devhost.conversation import Conversation  # noqa: E402
from devhost.plugins import call_tool, load_plugins, tools_of  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Passage, Relay  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.manager import get_memory_manager  # noqa: E402

OWNER = "5f0c7f6e-40f2-4f6e-9a51-0a11ce5e7b1d"
ASKED = "Remember this for the order service: money amounts are integer cents; use pytest for backend tests."
# What a model makes of it that follows the tool's description.
SAVED = "Order service conventions: money amounts such as prices, totals and refunds are integer cents; backend tests use pytest."
FROM_ANOTHER_CLIENT = "Order service decision: a refund is calculated from the captured amount, never from the list price."
REQUEST = "Add a refund calculation to the order service, following its conventions."
LOST = "Order service constraint: a refund needs a second approval above 500 euros."

CONFIG = """\
memory:
  enabled: true
  manager_class: powercontext
  mode: middleware
plugins:
  - use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"
"""


class Interrupt:
    """Ctrl-C and SIGTERM: they raise ``KeyboardInterrupt``, once, but not while an event loop runs.

    ``asyncio.Runner`` would cancel the call under way. One that ends just then has nothing to cancel, and a tool answers
    a cancelled call: either way the story would go on. And a loop that an exception leaves at any moment may not close.
    """

    def __init__(self) -> None:
        self._held = self._noted = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second one would disturb the cleaning up
        self._noted = True
        if not self._held:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold an interrupt back until the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._noted:
            raise KeyboardInterrupt


class Calls:
    """The host's event loop. An interrupt comes after the call under way, which takes seconds at most."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._runner = asyncio.Runner()

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._interrupt.held():
            self._runner.close()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Return what ``call`` returns."""
        with self._interrupt.held():
            return self._runner.run(call)


class Demo:
    """Runs the story and counts what did not happen as it should."""

    def __init__(self, server: RealServer, relay: Relay, scope_id: str, runner: Calls) -> None:
        self.runner = runner
        self.server = server
        self.relay = relay
        self.scope_id = scope_id
        self.tools = {tool.name: tool for tool in tools_of(load_plugins()).values()}
        self.failed = 0

    def check(self, claim: str, holds: bool) -> None:
        """Print a claim and whether it holds."""
        self.failed += not holds
        print(f"   {'ok    ' if holds else 'FAILED'} {claim}")

    def save(self, text: str, context: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Call the tool as a model would in a run of ``context``; print and return what the model gets back."""
        message = self.runner.run(call_tool(self.tools["remember"], {"text": text, "kind": "convention"}, context))
        print(f"   model's call: remember({text!r}, 'convention')\n   result:       {message.content}")
        return message.status, json.loads(message.content) if message.status == "success" else {}

    def stored(self, text: str) -> int:
        """Return how often the server has ``text``, asking it directly."""
        body = {"scope_id": self.scope_id, "limit": 50}
        entries = self.server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()["entries"]
        return [entry["text"] for entry in entries].count(text)

    def run(self) -> None:
        """Tell the story, step by step."""
        self.save_what_the_user_asks()
        self.store_from_another_client()
        conversation = self.recall_in_a_new_conversation()
        self.second_turn(conversation)
        self.other_callers()
        self.lost_replies()
        self.server_down()

    def save_what_the_user_asks(self) -> None:
        """Save a convention, and save it again."""
        print(f"\n1. The owner says: {ASKED}")
        status, result = self.save(SAVED, {"user_id": OWNER})
        self.check("it is saved, with the server's citation", (status, result["outcome"]) == ("success", "saved") and result["citation"]["artifact_id"].startswith("art_"))
        _, again = self.save(SAVED, {"user_id": OWNER})
        self.check("saving it again adds nothing", again["outcome"] == "already_saved" and again["citation"] == result["citation"])
        self.check("the server has it once", self.stored(SAVED) == 1)

    def store_from_another_client(self) -> None:
        """Store a decision through PowerContext's own API."""
        print(f"\n2. Another client stores in the same Scope:\n   {FROM_ANOTHER_CLIENT}")
        self.server.remember(self.scope_id, "decision", FROM_ANOTHER_CLIENT)

    def recall_in_a_new_conversation(self) -> Conversation:
        """Open a new conversation of the owner."""
        print("\n3. The owner opens a new conversation. DeerFlow sends the model:")
        conversation = Conversation({"user_id": OWNER})
        before = len(self.relay.requests)
        messages, milliseconds = timed_turn(self.runner, conversation, REQUEST)
        for message in messages:
            print("\n".join(f"   {message['role']:>6} | {line}" for line in message["content"].splitlines()))
        memory = messages[0]["content"]
        used = len(memory.removeprefix("<memory>\n").removesuffix("\n</memory>").encode())
        citations = [line.strip() for line in memory.splitlines() if "Artifact:" in line]
        print(f"   citation: {citations[0] if citations else 'none'}\n   budget: {used} of 8000 bytes    recall: {milliseconds:.0f} ms")
        self.check("what the owner had remembered is in it, as a message of the user's role", SAVED in memory and messages[0]["role"] == "user")
        self.check("what the other client stored is in it", FROM_ANOTHER_CLIENT in memory)
        self.check("both are cited", len(citations) == 2 and all('family="atomic-memory", id="art_' in citation for citation in citations))
        self.check("it is within its budget", used <= 8000)
        self.check("two requests were made: search, prepare", len(self.relay.requests) == before + 2)
        return conversation

    def second_turn(self, conversation: Conversation) -> None:
        """Go on in the same conversation."""
        print("\n4. The second turn:")
        before = len(self.relay.requests)
        messages, _ = timed_turn(self.runner, conversation, "Now write its test.")
        self.check("the memory is still there, once", sum(SAVED in message["content"] for message in messages) == 1)
        self.check("the server was not asked again", len(self.relay.requests) == before)

    def other_callers(self) -> None:
        """Ask and save as somebody else, as nobody, and as DeerFlow's stand-in for nobody."""
        print("\n5. Anyone else:")
        before = len(self.relay.requests)
        for name, context in {"another user": {"user_id": "bob"}, "a missing identity": {}, "`default`": {"user_id": "default"}}.items():
            messages, _ = timed_turn(self.runner, Conversation(context), REQUEST)
            status, _ = self.save(SAVED, context)
            self.check(f"{name} recalls and saves nothing", [message["content"] for message in messages] == [REQUEST] and status == "error")
        self.check("no request was made for them, by recall or by the tool", len(self.relay.requests) == before)

    def lost_replies(self) -> None:
        """Lose the reply to a write, once with the server there to ask, once without."""
        print("\n6. The reply to a write is lost on its way:")
        self.relay.plan = lambda request: Passage(reply_bytes=0) if request.path.endswith("/remember") else Passage()
        _, result = self.save(LOST, {"user_id": OWNER})
        self.check("it is saved: the tool found it by asking once more", result["outcome"] == "saved" and self.stored(LOST) == 1)
        self.relay.plan = lambda _request: Passage(reply_bytes=0)
        _, result = self.save(f"{LOST} It is logged.", {"user_id": OWNER})
        self.check("and where nothing answers that question, it is unknown", result["outcome"] == "unknown" and result["citation"] is None)

    def server_down(self) -> None:
        """Stop the server, chat on, and try to save."""
        print("\n7. The server is stopped:")
        self.server.stop()
        self.relay.__exit__(None, None, None)
        messages, milliseconds = timed_turn(self.runner, Conversation({"user_id": OWNER}), REQUEST)
        self.check(f"the conversation goes on without memory, after {milliseconds:.0f} ms", [message["content"] for message in messages] == [REQUEST])
        self.check("within the limit of 2 s", milliseconds < 2100)
        status, _ = self.save(SAVED, {"user_id": OWNER})
        self.check("a save says that it is none", status == "error")


def timed_turn(runner: Calls, conversation: Conversation, text: str) -> tuple[list[dict[str, str]], float]:
    """Return a turn's messages and how long it took, in milliseconds."""
    started = time.perf_counter()
    messages = runner.run(conversation.turn(text))
    return messages, (time.perf_counter() - started) * 1000


def configure(folder: Path, base_url: str, token: str, scope_id: str) -> PowerContextMemoryManager:
    """Configure the host as an operator would, and return its memory manager."""
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("POWERCONTEXT_DEERFLOW_")]:
        del os.environ[name]
    os.environ |= {
        "DEER_FLOW_CONFIG_PATH": str(folder / "config.yaml"),
        "POWERCONTEXT_DEERFLOW_BASE_URL": base_url,
        "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
        "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
        "POWERCONTEXT_DEERFLOW_TOKEN": token,
    }
    manager = get_memory_manager()
    assert isinstance(manager, PowerContextMemoryManager)
    return manager


def main() -> int:
    """Run the demo; return 0 only if everything it shows was checked and held."""
    interrupt = Interrupt()
    logging.basicConfig(level=logging.INFO, format="   log    %(levelname)s %(message)s", stream=sys.stdout)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="powercontext-demo-") as name:
        print("Starting a real PowerContext server (SQLite, bearer token) on loopback ...", flush=True)
        with RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay, Calls(interrupt) as runner:
            version = server.request("GET", "/v1/server-info").json()["package_version"]
            print(f"PowerContext {version} is ready on port {server.port}, after {time.perf_counter() - started:.1f} s.")
            scope_id = server.create_scope("Order service")
            manager = configure(Path(name), relay.base_url, server.token, scope_id)
            manager.warm()
            demo = Demo(server, relay, scope_id, runner)
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
