"""Compares what capture claims as queued with what the server has. ``make audit`` runs it.

Turns of many threads are captured by Gateway processes that are killed at random moments, through a bad network, to a
real server that is killed and locked. Afterwards every claimed message must be on the server once, in order within its
thread, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from powercontext_support.byte_server import Request  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Passage, Relay  # noqa: E402
from troubles import Troubles  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402

OWNER = "5f0c7f6e-0000-4000-8000-000000000001"
HARMED = 0.1  # of all requests; the audit of saving harms half of them, but a delivery backs off after each


def text_of(turn: int) -> str:
    """Return what the user wrote in a turn."""
    return f"Audit turn{turn}: the depot of route{turn} opens at six."


class Claims(logging.Handler):
    """Hears from capture's own log that a conversation is queued."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.queued = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record that counts something queued, or that finds nothing new in a turn that was queued before."""
        if record.getMessage().startswith(("PowerContext capture: 1 queued", "PowerContext capture: nothing new")):
            self.queued.set()


def gateway(first: int, last: int, threads: int, folder: str) -> None:
    """Be a Gateway's process: capture the turns from ``first``, print each that is claimed, then send what is left."""
    claims, log = Claims(), logging.getLogger("deerflow.agents.memory.backends.powercontext.capture.log")
    log.setLevel(logging.DEBUG)
    log.addHandler(claims)
    log.propagate = False
    manager = PowerContextMemoryManager.from_config({"storage_path": folder})
    manager.warm()
    for turn in range(first, last):
        claims.queued.clear()
        earlier = range(turn % threads, turn + 1, threads)
        conversation = [SimpleNamespace(type="human", content=text_of(number), id=f"m{number}", additional_kwargs={}) for number in earlier]
        manager.add(f"thread{turn % threads}", conversation, user_id=OWNER)
        if claims.queued.wait(30):
            print(turn, flush=True)
    while not manager.shutdown_flush(30.0):
        time.sleep(0.5)
    print("sent", flush=True)


def run_gateways(turns: int, threads: int, folder: str, chance: random.Random, troubles: Troubles) -> tuple[set[int], int]:
    """Capture all turns with processes that are killed after a while; return the claimed turns and the number of kills."""
    claimed: set[int] = set()
    kills = 0
    while len(claimed) < turns:
        command = [sys.executable, __file__, "--gateway", str(len(claimed)), str(turns), "--threads", str(threads), "--folder", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        timer: threading.Timer | None = None
        for line in process.stdout:
            if timer is None:
                timer = threading.Timer(0.2 + 3 * chance.random(), process.kill)
                timer.start()
            if line.strip().isdigit():
                claimed.add(int(line))
        if timer is not None:
            timer.cancel()
        kills += process.wait() < 0
    troubles.stop()
    return claimed, kills


def drain(turns: int, threads: int, folder: str) -> None:
    """Send what is left, with nothing in the way."""
    command = [sys.executable, __file__, "--gateway", str(turns), str(turns), "--threads", str(threads), "--folder", folder]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=900)


def stored(server: RealServer, scope_id: str, relay: Relay) -> dict[str, list[tuple[int, str]]]:
    """Return what the server has under every id it was ever sent, by thread: position and content."""
    sent: dict[str, Any] = {}
    for request in relay.requests:
        if request.path == "/v1/sources/content":
            body = json.loads(request.body)
            sent[body["source_id"]] = body
    by_thread: dict[str, list[tuple[int, str]]] = {}
    for source_id, body in sent.items():
        reply = server.request("GET", f"/v1/scopes/{scope_id}/sources/content/{quote(source_id)}")
        if reply.status_code == 200:
            by_thread.setdefault(body["metadata"]["thread"], []).append((reply.json()["position"], reply.json()["content"]))
    return by_thread


def compare(claimed: set[int], by_thread: dict[str, list[tuple[int, str]]], total: int) -> bool:
    """Print the tally; return whether every claim holds."""
    texts = [text for sources in by_thread.values() for _, text in sources]
    lost = [turn for turn in claimed if text_of(turn) not in set(texts)]
    doubled = len(texts) - len(set(texts))
    foreign = total - len(set(texts) & {text_of(turn) for turn in claimed})
    disordered = 0
    for sources in by_thread.values():
        numbers = [int(text.split()[1].strip("turn:")) for _, text in sorted(sources)]
        disordered += numbers != sorted(numbers)
    print(f"{len(claimed)} turns claimed as queued in {len(by_thread)} threads; the server has {total} sources")
    print(f"claimed but not on the server: {len(lost)}\non the server twice: {doubled}\non the server but not claimed: {foreign}\nthreads out of order: {disordered}")
    return not (lost or doubled or foreign or disordered)


def audit(arguments: argparse.Namespace, executable: str) -> bool:
    """Run the audit; return whether every claim holds."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="powercontext-audit-") as name, RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay:
        scope_id = server.create_scope("audit of capture")
        os.environ |= {
            "POWERCONTEXT_DEERFLOW_BASE_URL": relay.base_url,
            "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
            "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
            "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
            "POWERCONTEXT_DEERFLOW_CAPTURE": "user",
        }
        troubles = Troubles(server, arguments.seed)

        def plan(request: Request) -> Passage:
            return troubles.passage(request) if troubles.chance() < HARMED * 2 else Passage()

        relay.plan = plan
        troubles.start()
        claimed, kills = run_gateways(arguments.turns, arguments.threads, name, random.Random(arguments.seed), troubles)
        relay.plan = lambda _request: Passage()
        drain(arguments.turns, arguments.threads, name)
        print(f"the Gateway was killed {kills} times, the server {troubles.restarts} times, its database locked {troubles.locks} times; {time.monotonic() - started:.0f} s")
        body = {"selection": {"mode": "exact", "scope_ids": [scope_id]}}
        total = server.request("POST", "/v1/stats", body).raise_for_status().json()["inventory"]["sources"]["total"]
        return compare(claimed, stored(server, scope_id, relay), total)


def main() -> int:
    """Run the audit, or be one of its Gateways; return 0 only if every claim holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--gateway", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.gateway:
        first, last = arguments.gateway
        gateway(first, last, arguments.threads, arguments.folder)
        return 0
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    print(f"seed {arguments.seed}", flush=True)
    holds = audit(arguments, executable)
    print("Every claim holds." if holds else "FALSE CLAIMS.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
