"""Capture, shown on a real PowerContext server with a generation model that is played here. ``make demo CAPTURE=1`` runs it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BACKEND = Path(__file__).resolve().parents[1]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main: there is nothing to stop yet
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from devhost.interrupt import Interrupt  # noqa: E402
from devhost.story import end_with  # noqa: E402
from powercontext_support.generation import GenerationModel  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402

OWNER = "5f0c7f6e-0000-4000-8000-000000000001"
SAID = "The warehouse in Utrecht ships parcels on Tuesdays and Fridays."
SECRET = "The password of the scanner is hunter22."
ASKED = "When does the warehouse in Utrecht ship parcels?"
LIMIT_SECONDS = 120.0


def message(kind: str, text: str, name: str) -> Any:
    """Return a message as the host has them."""
    return SimpleNamespace(type=kind, content=text, id=name, additional_kwargs={}, tool_calls=[])


def show(server: RealServer, model: GenerationModel, scope_id: str, folder: str) -> bool:
    """Tell the story; return whether everything was as claimed."""
    os.environ |= {
        "POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url,
        "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
        "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
        "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
        "POWERCONTEXT_DEERFLOW_CAPTURE": "turns",
    }
    manager = PowerContextMemoryManager.from_config({"storage_path": folder})
    print(f"\n1. A conversation, in which nobody asks to remember anything:\n   owner: {SAID}\n   owner: {SECRET}")
    conversation = [message("human", SAID, "a"), message("ai", "I will plan for these days.", "b")]
    manager.add("thread", conversation, user_id=OWNER)
    manager.add("thread", [*conversation, message("human", SECRET, "c"), message("ai", "I noted hunter22.", "d")], user_id=OWNER)
    sent = manager.shutdown_flush(30.0)
    print(f"   sent to the server as sources: {server.count_requests('capture_content_source')} (the turn with a password stayed)")
    print("\n2. The server makes memories of them by itself, every two seconds ...", flush=True)
    started = time.monotonic()
    context = ""
    while not context and time.monotonic() - started < LIMIT_SECONDS:
        time.sleep(0.5)
        context = manager.get_context(OWNER, query=ASKED)
    print(f"   a memory was there after {time.monotonic() - started:.0f} s")
    print(f"\n3. A new conversation: {ASKED}\n   DeerFlow gives the model:")
    print("\n".join(f"   | {line}" for line in context.splitlines()))
    manager.close()
    shown = "\n".join(model.evidence)
    return sent and SAID in context and "hunter22" not in shown and server.count_requests("capture_content_source") == 2


def main() -> int:
    """Run the demo; return 0 only if everything it shows was checked and held."""
    Interrupt()
    logging.basicConfig(level=logging.WARNING, format="   log    %(levelname)s %(message)s", stream=sys.stdout)
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    print("Starting a real PowerContext server with a played generation model on loopback ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="powercontext-demo-") as name, GenerationModel() as model, RealServer(Path(name), executable=executable, settings=model.server_settings(2)) as server:
        holds = show(server, model, server.create_scope("Capture"), name)
    print("\nEverything above was checked." if holds else "\nSOMETHING DID NOT HOLD.")
    return 0 if holds else 1


if __name__ == "__main__":
    end_with(main)
