"""Compares what saving claims with what the store holds, while the network and the server are bad. ``make audit`` runs it.

Saves go through a relay that delays, cuts, loses and spoils requests and replies, to a real server that is killed and restarted.
Afterwards every text is looked for in the store: a claim it contradicts, or a text stored twice, is a failure.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Passage, Relay  # noqa: E402
from powercontext_support.scripted_server import Request  # noqa: E402

from deerflow.agents.memory.backends.powercontext.client import PowerContextClient  # noqa: E402
from deerflow.agents.memory.backends.powercontext.config import load_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.saving import NotSaved, Outcome, Saved, Saver, Unknown  # noqa: E402

THREADS = 4
LIMIT_SECONDS = 1.0
# Three steps of one second, and a tenth of a second each for what is not waiting.
MAX_SAVE_SECONDS = 3.3


class Audit:
    """One run of ``saves`` saves. About one in five repeats a text that was saved.

    A repeat whose look-up fails is written again (PowerContext has no idempotency key and stores it twice), so these are counted apart.
    """

    def __init__(self, server: RealServer, relay: Relay, *, saves: int, seed: int) -> None:
        self.server = server
        self.saver = Saver(PowerContextClient(load_settings()), step_timeout_seconds=LIMIT_SECONDS)
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.left = list(range(saves))
        self.outcomes: dict[str, list[Outcome]] = {}
        self.slowest = 0.0
        self.restarts = 0
        relay.plan = self.plan

    def plan(self, _request: Request) -> Passage:
        """Let half of the requests pass, and harm the others."""
        with self.lock:
            harm, amount = self.random.random(), self.random.random()
        if harm < 0.5:
            return Passage()
        if harm < 0.6:
            return Passage(request=False)
        if harm < 0.75:
            return Passage(reply_bytes=int(amount * 600))
        return Passage(delay_seconds=1.5 * amount) if harm < 0.9 else Passage(spoil=True)

    def worker(self) -> None:
        """Save until nothing is left."""
        while True:
            with self.lock:
                if not self.left:
                    return
                number = self.left.pop()
                known = [text for text, outcomes in self.outcomes.items() if isinstance(outcomes[0], Saved)]
                text = self.random.choice(known) if known and self.random.random() < 0.2 else f"Audit entry number{number}: the depot of route{number} opens at six."
            time.sleep(0.3)  # so that the saves spread over times with and without a server
            started = time.monotonic()
            outcome = self.saver.save("fact", text)
            with self.lock:
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.outcomes.setdefault(text, []).append(outcome)

    def killer(self, done: threading.Event) -> None:
        """Kill the server now and then, and start it again."""
        while not done.wait(5.0 + 5.0 * self.random.random()):
            self.server.stop(kill=True)
            self.server.start()
            self.restarts += 1

    def run(self) -> bool:
        """Save everything, then compare; print the tally and return whether every claim holds."""
        done = threading.Event()
        killer = threading.Thread(target=self.killer, args=(done,))
        workers = [threading.Thread(target=self.worker) for _ in range(THREADS)]
        for thread in [killer, *workers]:
            thread.start()
        for thread in workers:
            thread.join()
        done.set()
        killer.join()
        return self.compare(self.stored())

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
        """Print the tally; return whether no claim is contradicted and no text is stored twice."""
        claims = Counter(type(outcome).__name__ for outcomes in self.outcomes.values() for outcome in outcomes)
        false_saved = [text for text, outcomes in self.outcomes.items() if not stored[text] and any(not isinstance(outcome, NotSaved | Unknown) for outcome in outcomes)]
        false_not_saved = [text for text, outcomes in self.outcomes.items() if stored[text] and all(isinstance(outcome, NotSaved) for outcome in outcomes)]
        unknown = [text for text, outcomes in self.outcomes.items() if isinstance(outcomes[0], Unknown)]
        duplicates = [text for text, count in stored.items() if count > sum(isinstance(outcome, Saved | Unknown) for outcome in self.outcomes[text])]
        repeats = sum(len(outcomes) - 1 for outcomes in self.outcomes.values())
        doubled = sum(count - 1 for count in stored.values())
        print(f"{sum(claims.values())} saves, {len(self.outcomes)} texts, {self.restarts} kills of the server")
        print("claimed: " + ", ".join(f"{count} {claim}" for claim, count in sorted(claims.items())))
        print(f"of {len(unknown)} unknown, {sum(1 for text in unknown if stored[text])} were stored")
        print(f"saved but not in the store: {len(false_saved)}\nnot saved but in the store: {len(false_not_saved)}\nstored more often than written: {len(duplicates)}")
        print(f"of {repeats} repeats, {doubled} were written again because the look-up failed twice")
        print(f"slowest save: {self.slowest:.2f} s (limit {MAX_SAVE_SECONDS} s)")
        return not (false_saved or false_not_saved or duplicates) and self.slowest <= MAX_SAVE_SECONDS


def main() -> int:
    """Run the audit; return 0 only if nothing is contradicted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="powercontext-audit-") as name, RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay:
        os.environ |= {
            "POWERCONTEXT_DEERFLOW_BASE_URL": relay.base_url,
            "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": "auditor",
            "POWERCONTEXT_DEERFLOW_SCOPE_ID": server.create_scope("audit"),
            "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
        }
        holds = Audit(server, relay, saves=arguments.saves, seed=arguments.seed).run()
    print("Every claim holds." if holds else "FALSE CLAIMS.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
