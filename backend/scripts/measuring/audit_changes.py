"""Compares what correcting and forgetting claim with what the store holds. The second half of ``make audit``.

First replies to writes are cut, at every few bytes. Then threads correct and forget, some of them the same memory at once,
in the troubles of ``audit.py``. Afterwards every memory is looked at, with all its revisions.
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
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Relay  # noqa: E402
from troubles import Troubles, cutting_at  # noqa: E402

from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.changing import AlreadySo, Changed, NotChanged, Outcome  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.correcting import Corrector  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.forgetting import Forgetter  # noqa: E402

THREADS = 4
MAX_SECONDS = 28.0
REPLY_BYTES = 450


@dataclass
class Subject:
    """A memory by its first citation, the claims of its corrections by the texts it was to get, and of its forgettings."""

    citation: dict[str, Any]
    corrections: dict[str, Outcome] = field(default_factory=dict)
    forgettings: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True)
class Truth:
    """What the store says of a memory: the texts of its revisions, the present one last, and whether it is in use."""

    texts: list[str]
    active: bool

    def contradicts_correction(self, text: str, claim: Outcome) -> bool:
        """Tell whether ``claim`` is false. A text that others overwrote, or that a forgotten memory got, is in no conversation."""
        if isinstance(claim, Changed | AlreadySo):
            return text not in self.texts
        return isinstance(claim, NotChanged) and self.active and self.texts[-1] == text

    def contradicts_forgetting(self, claims: list[Outcome]) -> bool:
        """Tell whether one of ``claims`` is false."""
        done = any(isinstance(claim, Changed | AlreadySo) for claim in claims)
        return self.active if done else not self.active and all(isinstance(claim, NotChanged) for claim in claims)


class Audit:
    """Corrects and forgets, and keeps what was claimed."""

    def __init__(self, server: RealServer, relay: Relay, scope_id: str) -> None:
        self.server = server
        self.relay = relay
        self.scope_id = scope_id
        [self.binding] = load_settings().people.bindings
        self.corrector, self.forgetter = Corrector(load_settings()), Forgetter(load_settings())
        self.lock = threading.Lock()
        self.subjects: list[Subject] = []
        self.slowest = 0.0

    def new_subject(self) -> Subject:
        """Store a memory, not through the relay."""
        answer: Any = self.server.remember(self.scope_id, "fact", f"Audit subject{len(self.subjects)}: the depot opens at six.")
        self.subjects.append(Subject(answer["records"][0]["artifact"] if "records" in answer else answer["entry"]["citation"]))
        return self.subjects[-1]

    def change(self, subject: Subject, what: str, *, exactly: bool) -> None:
        """Correct to ``what``, or forget if it is blank; cite the first revision, or only the id."""
        citation = subject.citation if exactly else subject.citation.get("artifact_id") or subject.citation["entry_id"]
        started = time.monotonic()
        claim = self.corrector.correct(self.binding, citation, what) if what else self.forgetter.forget(self.binding, citation)
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - started)
            if what:
                subject.corrections[what] = claim
            else:
                subject.forgettings.append(claim)

    def cut_everywhere(self, offsets: range) -> None:
        """Cut the reply to a write at each of ``offsets``."""
        for offset in offsets:
            self.relay.plan = cutting_at(offset)
            self.change(self.new_subject(), "" if offset % 2 else f"Audit cut{offset}: the depot opens at seven.", exactly=True)

    def change_in_trouble(self, changes: int, at_once: int, troubles: Troubles) -> None:
        """Make ``changes`` from several threads, ``at_once`` of them to the same memory at about the same time."""
        work: list[tuple[Subject, str, bool]] = []
        for number in range(changes):
            subject = self.new_subject() if number % at_once == 0 else self.subjects[-1]
            forgets = troubles.chance() < 0.4
            work.append((subject, "" if forgets else f"Audit change{number}: the depot opens at eight.", troubles.chance() < 0.5))
        self.relay.plan = troubles.passage

        def worker() -> None:
            while True:
                with self.lock:
                    if not work:
                        return
                    subject, what, exactly = work.pop(0)
                self.change(subject, what, exactly=exactly)

        threads = [threading.Thread(target=worker) for _ in range(THREADS)]
        troubles.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        troubles.stop()

    @cached_property
    def entries(self) -> dict[str, Any]:
        """Return all entries of a server before 1.3, asked once, after the changes."""
        body = {"scope_id": self.scope_id, "include_inactive": True}
        entries = self.server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()["entries"]
        return {entry["citation"]["entry_id"]: entry for entry in entries}

    def truth_of(self, subject: Subject) -> Truth:
        """Ask the server itself."""
        if "artifact_id" not in subject.citation:
            entry = self.entries[subject.citation["entry_id"]]
            return Truth([entry["text"]], entry["state"] == "active")
        path = f"/v1/scopes/{self.scope_id}/artifacts/atomic-memory/{subject.citation['artifact_id']}"
        state = self.server.request("GET", f"{path}/state").raise_for_status().json()
        revisions = range(1, state["artifact"]["revision"] + 1)
        texts = [self.server.request("GET", f"{path}/revisions/{number}").raise_for_status().json()["content"]["text"] for number in revisions]
        return Truth(texts, state["state"] == "active")

    def compare(self) -> bool:
        """Print the tally; return whether no claim is contradicted and nothing took too long."""
        truths = [(subject, self.truth_of(subject)) for subject in self.subjects]
        corrections = [(truth, text, claim) for subject, truth in truths for text, claim in subject.corrections.items()]
        print_tally("corrections", [claim for _, _, claim in corrections])
        print_tally("forgettings", [claim for subject in self.subjects for claim in subject.forgettings])
        false = sum(truth.contradicts_correction(text, claim) for truth, text, claim in corrections)
        false += sum(truth.contradicts_forgetting(subject.forgettings) for subject, truth in truths)
        by_read_back = sum(getattr(claim, "by_read_back", False) for subject in self.subjects for claim in [*subject.corrections.values(), *subject.forgettings])
        print(f"{by_read_back} were confirmed by reading back; claims that the store contradicts: {false}; slowest change {self.slowest:.1f} s (limit {MAX_SECONDS:.0f} s)")
        return not false and self.slowest <= MAX_SECONDS


def print_tally(name: str, claims: list[Outcome]) -> None:
    """Print how often each outcome was claimed."""
    kinds = Counter(f"{type(claim).__name__} {claim.reason}" if isinstance(claim, NotChanged) else type(claim).__name__ for claim in claims)
    print(f"{len(claims)} {name}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


def main() -> int:
    """Run the audit; return 0 only if nothing is contradicted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--offsets", type=int, default=REPLY_BYTES, help="cut the reply at each fifth of so many offsets")
    parser.add_argument("--server", choices=["1.4.1", "1.2.0"], default="1.4.1")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    executable = find_executable(arguments.server)
    if executable is None:
        parser.exit(2, f"There is no PowerContext {arguments.server} here: run `make install`, or `make test-servers`.\n")
    logging.basicConfig(level=logging.ERROR)  # what fails here, fails on purpose
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="powercontext-audit-") as name, RealServer(Path(name), executable=executable) as server, Relay(server.base_url) as relay:
        scope_id = server.create_scope("audit")
        os.environ |= {
            "POWERCONTEXT_DEERFLOW_BASE_URL": relay.base_url,
            "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": "auditor",
            "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
            "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
            "POWERCONTEXT_DEERFLOW_REMEMBER_TIMEOUT_SECONDS": "1.0",
        }
        audit, troubles = Audit(server, relay, scope_id), Troubles(server, arguments.seed)
        audit.cut_everywhere(range(0, arguments.offsets, 5))
        # Before 1.3 a memory shows no former texts, so there each is changed once.
        audit.change_in_trouble(arguments.changes, 3 if arguments.server == "1.4.1" else 1, troubles)
        print(f"the server was killed {troubles.restarts} times, its database locked {troubles.locks} times")
        holds = audit.compare()
    print("Every claim holds." if holds else "FALSE CLAIMS, or too slow.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
