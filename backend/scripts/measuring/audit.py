"""Compares what saving claims with what the store holds, while the network and the server are bad. ``make audit`` runs it.

First the reply to a write is cut at every byte offset once. Then saves and recalls go through a relay that delays, cuts,
loses and spoils them, answers as a proxy does and closes connections on reuse, to a real server that is killed and
restarted and whose database is locked. They run as in DeerFlow: on one event loop, beside strangers on a pool of six
threads, some runs cancelled at a random moment, some children forked. Afterwards every text is looked for in the store.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from busy_host import BusyHost  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Relay  # noqa: E402
from troubles import Troubles, cutting_at  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.backends.powercontext.deadline import Deadline  # noqa: E402
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.outcomes import NotSaved, Outcome, Saved, Unknown  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.tool_calls import CALL_SECONDS  # noqa: E402

OWNER = "auditor"
LIMIT_SECONDS = 1.0
# Three steps of one second for a save, one for a recall, and a tenth of a second a step for what is not waiting.
MAX_SAVE_SECONDS = 3.3
MAX_RECALL_SECONDS = 1.1
MAX_WAIT_SECONDS = 0.5
MAX_UNKNOWN_SHARE = 0.2
REPLY_BYTES = 400


class Audit:
    """Saves, and keeps what was claimed and how long it took."""

    def __init__(self, server: RealServer, relay: Relay) -> None:
        self.server = server
        self.relay = relay
        self.saver = Saver(load_settings())
        [self.binding] = load_settings().people.bindings
        self.manager = PowerContextMemoryManager(backend_config={})
        self.outcomes: dict[str, list[Outcome]] = {}
        self.slowest_save = 0.0

    def timed_save(self, text: str, deadline: Deadline) -> Outcome:
        """Save ``text``, and keep how long that took."""
        started = time.monotonic()
        outcome = self.saver.save(self.binding, "fact", text, deadline=deadline)
        self.slowest_save = max(self.slowest_save, time.monotonic() - started)
        return outcome

    def cut_everywhere(self, offsets: range) -> None:
        """Cut the reply to a write at each of ``offsets``."""
        for offset in offsets:
            self.relay.plan = cutting_at(offset)
            text = f"Audit cut{offset}: the ferry number{offset} leaves at noon."
            self.outcomes[text] = [self.timed_save(text, Deadline.after(CALL_SECONDS))]

    def save_in_trouble(self, saves: int, troubles: Troubles) -> BusyHost:
        """Save ``saves`` times on a busy host."""
        self.relay.plan = troubles.passage
        host = BusyHost(self.timed_save, lambda: self.manager.get_context(OWNER, query="When does the depot open?"), troubles)
        troubles.start()
        host.serve(saves)
        troubles.stop()
        for text, outcomes in host.outcomes.items():
            self.outcomes.setdefault(text, []).extend(outcomes)
        return host

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

    def claims_hold(self, stored: Counter[str]) -> bool:
        """Print the tally; return whether no claim is contradicted and few are unknown."""
        every = [(text, outcome) for text, outcomes in self.outcomes.items() for outcome in outcomes]
        claims = Counter(type(outcome).__name__ for _, outcome in every)
        unknown = claims["Unknown"] / len(every)
        false_saved = {text for text, outcome in every if not isinstance(outcome, NotSaved | Unknown) and not stored[text]}
        false_not_saved = {text for text, outcomes in self.outcomes.items() if stored[text] and all(isinstance(outcome, NotSaved) for outcome in outcomes)}
        untold = [text for text in stored if text not in self.outcomes]
        writes = Counter(text for text, outcome in every if isinstance(outcome, Saved | Unknown))
        doubled = {text for text, count in stored.items() if text in self.outcomes and count > writes[text]}
        repeated = {text for text, outcomes in self.outcomes.items() if stored[text] > 1 and not isinstance(outcomes[0], NotSaved | Unknown)}
        print(f"{len(every)} saves of {len(self.outcomes)} texts: " + ", ".join(f"{count} {claim}" for claim, count in sorted(claims.items())))
        print(f"unknown: {unknown:.0%} (limit {MAX_UNKNOWN_SHARE:.0%}), of which stored: {sum(1 for text, outcomes in self.outcomes.items() if isinstance(outcomes[0], Unknown) and stored[text])}")
        print(f"saved but not in the store: {len(false_saved)}\nnot saved but in the store: {len(false_not_saved)}\nwritten once but stored twice: {len(doubled)}")
        print(f"confirmed, said again and stored twice: {len(repeated)}\nin the store, and never told of: {len(untold)}")
        return unknown < MAX_UNKNOWN_SHARE and not (false_saved or false_not_saved or doubled or repeated or untold)

    def in_time(self, host: BusyHost) -> bool:
        """Print what the host saw; return whether nobody waited too long and every child came back."""
        recall, wait = max(host.recalls, default=0.0), max(host.waits, default=0.0)
        hung = sum(count for code, count in host.children.items() if code)
        print(f"slowest save: {self.slowest_save:.2f} s (limit {MAX_SAVE_SECONDS} s); slowest of {len(host.recalls)} recalls: {recall:.2f} s (limit {MAX_RECALL_SECONDS} s)")
        print(f"longest wait of {len(host.waits)} strangers: {wait:.2f} s (limit {MAX_WAIT_SECONDS} s); {host.cancelled} runs cancelled; {host.children.total()} children forked, {hung} hung")
        return self.slowest_save <= MAX_SAVE_SECONDS and recall <= MAX_RECALL_SECONDS and wait <= MAX_WAIT_SECONDS and not hung


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
        host = audit.save_in_trouble(arguments.saves, troubles)
        print(f"the server was killed {troubles.restarts} times, its database locked {troubles.locks} times")
        holds, quick = audit.claims_hold(audit.stored()), audit.in_time(host)
    print(("Every claim holds" if holds else "FALSE CLAIMS, or too many unknown") + ("." if quick else ", BUT TOO SLOW."))
    return 0 if holds and quick else 1


if __name__ == "__main__":
    sys.exit(main())
