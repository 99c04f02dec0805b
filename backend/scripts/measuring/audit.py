"""Compares what saving claims with what the store holds, while the network and the server are bad. ``make audit`` runs it.

First the reply to a write is cut at every byte offset once. Then saves and recalls go through a relay that delays,
cuts, loses and spoils them, to a real server that is killed and restarted and whose database is locked. Afterwards
every text is looked for in the store.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Relay  # noqa: E402
from troubles import Troubles, cutting_at  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.backends.powercontext.config import load_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.outcomes import NotSaved, Outcome, Saved, Unknown  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver  # noqa: E402

OWNER = "auditor"
THREADS = 4
LIMIT_SECONDS = 1.0
# Three steps of one second for a save, one for a recall, and a tenth of a second a step for what is not waiting.
MAX_SAVE_SECONDS = 3.3
MAX_RECALL_SECONDS = 1.1
REPLY_BYTES = 400


class Audit:
    """Saves and recalls, and keeps what was claimed and how long it took."""

    def __init__(self, server: RealServer, relay: Relay) -> None:
        self.server = server
        self.relay = relay
        self.saver = Saver(load_settings())
        [self.binding] = load_settings().people.bindings
        self.manager = PowerContextMemoryManager(backend_config={})
        self.lock = threading.Lock()
        self.outcomes: dict[str, list[Outcome]] = {}
        self.slowest_save = self.slowest_recall = 0.0
        self.recalls = 0

    def save(self, text: str) -> None:
        """Save ``text`` and keep the claim."""
        started = time.monotonic()
        outcome = self.saver.save(self.binding, "fact", text)
        with self.lock:
            self.slowest_save = max(self.slowest_save, time.monotonic() - started)
            self.outcomes.setdefault(text, []).append(outcome)

    def recall_until(self, done: threading.Event) -> None:
        """Recall again and again; a failure is no text, never an exception."""
        while not done.wait(0.1):
            started = time.monotonic()
            self.manager.get_context(OWNER, query="When does the depot open?")
            self.slowest_recall = max(self.slowest_recall, time.monotonic() - started)
            self.recalls += 1

    def cut_everywhere(self, offsets: range) -> None:
        """Cut the reply to a write at each of ``offsets``."""
        for offset in offsets:
            self.relay.plan = cutting_at(offset)
            self.save(f"Audit cut{offset}: the ferry number{offset} leaves at noon.")

    def save_in_trouble(self, saves: int, troubles: Troubles) -> None:
        """Save ``saves`` times from several threads. About one in five repeats a text that was saved."""
        left = list(range(saves))

        def worker() -> None:
            while True:
                with self.lock:
                    if not left:
                        return
                    number = left.pop()
                    known = sorted(text for text, outcomes in self.outcomes.items() if isinstance(outcomes[0], Saved))
                repeats = known and troubles.chance() < 0.2
                text = known[int(troubles.chance() * len(known))] if repeats else f"Audit entry{number}: the depot of route{number} opens at six."
                time.sleep(0.3)  # so that the saves spread over times with and without a server
                self.save(text)

        self.relay.plan = troubles.passage
        done = threading.Event()
        threads = [threading.Thread(target=worker) for _ in range(THREADS)]
        recaller = threading.Thread(target=self.recall_until, args=(done,))
        troubles.start()
        for thread in [recaller, *threads]:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        recaller.join()
        troubles.stop()

    def stored(self) -> Counter[str]:
        """Return how often the store has each text."""
        stored: Counter[str] = Counter()
        cursor: str | None = None
        while True:
            body = {"scope_id": os.environ["POWERCONTEXT_DEERFLOW_SCOPE_ID"], "limit": 100} | ({"cursor": cursor} if cursor else {})
            page = self.server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()
            stored.update(entry["text"] for entry in page["entries"])
            cursor = page["next_cursor"]
            if cursor is None:
                return stored

    def compare(self, stored: Counter[str]) -> bool:
        """Print the tally; return whether no claim is contradicted and nothing took too long.

        A repeat whose look-up fails twice is written again, and PowerContext, which has no idempotency key, stores it
        twice: that is counted, but no failure. One write stored twice is.
        """
        every = [(text, outcome) for text, outcomes in self.outcomes.items() for outcome in outcomes]
        claims = Counter(type(outcome).__name__ for _, outcome in every)
        false_saved = {text for text, outcome in every if not isinstance(outcome, NotSaved | Unknown) and not stored[text]}
        false_not_saved = {text for text, outcomes in self.outcomes.items() if stored[text] and all(isinstance(outcome, NotSaved) for outcome in outcomes)}
        writes = Counter(text for text, outcome in every if isinstance(outcome, Saved | Unknown))
        doubled = {text for text, count in stored.items() if count > writes[text]}
        unknown = [text for text, outcomes in self.outcomes.items() if isinstance(outcomes[0], Unknown)]
        print(f"{len(every)} saves of {len(self.outcomes)} texts: " + ", ".join(f"{count} {claim}" for claim, count in sorted(claims.items())))
        print(f"of {len(unknown)} unknown, {sum(1 for text in unknown if stored[text])} are stored; {sum((stored - Counter(set(stored))).values())} repeats were written again")
        print(f"saved but not in the store: {len(false_saved)}\nnot saved but in the store: {len(false_not_saved)}\nwritten once but stored twice: {len(doubled)}")
        print(f"slowest save: {self.slowest_save:.2f} s (limit {MAX_SAVE_SECONDS} s); slowest of {self.recalls} recalls: {self.slowest_recall:.2f} s (limit {MAX_RECALL_SECONDS} s)")
        in_time = self.slowest_save <= MAX_SAVE_SECONDS and self.slowest_recall <= MAX_RECALL_SECONDS
        return in_time and not (false_saved or false_not_saved or doubled)


def main() -> int:
    """Run the audit; return 0 only if nothing is contradicted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=300)
    parser.add_argument("--offsets", type=int, default=REPLY_BYTES, help="cut the reply at so many offsets")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    logging.basicConfig(level=logging.ERROR)  # what fails here, fails on purpose
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="powercontext-audit-") as name, RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay:
        os.environ |= {
            "POWERCONTEXT_DEERFLOW_BASE_URL": relay.base_url,
            "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
            "POWERCONTEXT_DEERFLOW_SCOPE_ID": server.create_scope("audit"),
            "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
            "POWERCONTEXT_DEERFLOW_RECALL_TIMEOUT_SECONDS": str(LIMIT_SECONDS),
            "POWERCONTEXT_DEERFLOW_REMEMBER_TIMEOUT_SECONDS": str(LIMIT_SECONDS),
        }
        audit, troubles = Audit(server, relay), Troubles(server, arguments.seed)
        audit.cut_everywhere(range(arguments.offsets))
        print(f"the reply was cut at {arguments.offsets} offsets", flush=True)
        audit.save_in_trouble(arguments.saves, troubles)
        print(f"the server was killed {troubles.restarts} times, its database locked {troubles.locks} times")
        holds = audit.compare(audit.stored())
    print("Every claim holds." if holds else "FALSE CLAIMS, or too slow.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
