"""Whether a long life among faults leaves anything behind, and whether a shutdown is graceful. ``make soak`` runs it.

Eight threads recall from a server in another process that answers some requests badly, late or not at all, closes
connections on reuse and sometimes is a proxy. Beside them runs recall and save and are cancelled at a random moment, and
forked children recall once. This process's memory, descriptors and threads are looked at on the way and after ``close``.
Then ``close`` comes during 32 recalls.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter

from faulty_server import HELD_SECONDS
from parts import ProcessState, backend, in_threads, server_process
from powercontext_support import OWNER
from report import percentile
from soak_runs import Runs, recalled

from deerflow.agents.memory.backends.powercontext.tools.tool_calls import IDLE_SECONDS

THREADS = 8
LIMIT_SECONDS = 0.2
# Eight threads share two cores.
MAX_LATE_SECONDS = 0.2
WARM_UP_SHARE = 0.1
MAX_GROWTH_MIB = 10.0
A_HANDFUL = 5

CALLERS = 32
HELD_LIMIT_SECONDS = 2.0


class Soak:
    """A life of ``recalls`` recalls, and what came of them."""

    def __init__(self, recalls: int, seed: int) -> None:
        self.recalls = recalls
        self.runs: Runs | None = None
        self._seed = seed
        self.results: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.samples: dict[int, ProcessState] = {}
        self._marks = {round(recalls * share) for share in (WARM_UP_SHARE, 0.25, 0.5, 0.75, 1.0)}
        self._lock = threading.Lock()
        self._left = iter(range(recalls))

    def run(self, base_url: str) -> None:
        """Recall until nothing is left, looking at the process at the marks."""
        limits = {"recall_timeout_seconds": str(LIMIT_SECONDS), "remember_timeout_seconds": str(LIMIT_SECONDS)}
        with backend(base_url, **limits) as (manager, *_):
            self.runs = Runs(manager, self._seed)

            def work(_number: int) -> None:
                for number in self._left:
                    started = time.monotonic()
                    end = recalled(manager.get_context(OWNER, query=f"Refunds of case{number}"), f"case{number}")
                    self._note(end, time.monotonic() - started)

            self.runs.start()
            try:
                in_threads(THREADS, work)
            finally:
                self.runs.stop()

    def _note(self, end: str, seconds: float) -> None:
        with self._lock:
            self.results[end] += 1
            self.seconds.append(seconds)
            if len(self.seconds) in self._marks:
                self.samples[len(self.seconds)] = ProcessState.now()

    def report(self, before: ProcessState, after: ProcessState) -> bool:
        """Print what was seen; return whether it is what it should be."""
        print(f"{self.recalls} recalls: {self.results['memory']} with the memory, {self.results['nothing']} without")
        print(f"p99 {percentile(self.seconds, 0.99):.3f} s, longest {max(self.seconds):.3f} s (limit {LIMIT_SECONDS} s)")
        print(f"   before: {before}")
        for count, state in sorted(self.samples.items()):
            print(f"{count:9}: {state}")
        print(f"   closed: {after}")
        first, *_, last = (state for _, state in sorted(self.samples.items()))
        growth_mib = last.rss_mib - first.rss_mib
        print(f"grown since the warm-up: {growth_mib:.1f} MiB (limit {MAX_GROWTH_MIB:.0f})")
        left = (after.descriptors - before.descriptors, after.threads - before.threads)
        print(f"left after close: {left[0]} descriptors, {left[1]} threads (limit {A_HANDFUL})")
        checks = [
            self.runs is not None and self.runs.report(),
            set(self.results) == {"memory", "nothing"},
            self.results["memory"] > 0.8 * self.recalls,
            max(self.seconds) <= LIMIT_SECONDS + MAX_LATE_SECONDS,
            growth_mib <= MAX_GROWTH_MIB,
            max(left) <= A_HANDFUL,
        ]
        return all(checks)


def settled(before: ProcessState) -> ProcessState:
    """Return the state once the tools' threads, which end after a while without work, are gone, or should be."""
    until = time.monotonic() + IDLE_SECONDS + 1
    while True:
        time.sleep(0.2)  # for Linux a joined thread is there a moment longer
        state = ProcessState.now()
        if state.threads <= before.threads or time.monotonic() > until:
            return state


def close_under_load(base_url: str) -> bool:
    """Close a manager while ``CALLERS`` recalls are under way; return whether each still got its memory in time."""
    ends: list[str] = []
    seconds: list[float] = []
    with backend(f"{base_url}/held", recall_query="full", recall_timeout_seconds=str(HELD_LIMIT_SECONDS)) as (manager, *_):

        def work(number: int) -> None:
            if number == CALLERS:  # not a caller: it closes
                time.sleep(HELD_SECONDS / 2)
                manager.close()
                return
            started = time.monotonic()
            ends.append(recalled(manager.get_context(OWNER, query=f"Refunds of case{number}"), f"case{number}"))
            seconds.append(time.monotonic() - started)

        in_threads(CALLERS + 1, work)
        later = manager.get_context(OWNER, query="Refunds of case1")
    print(f"close() during {CALLERS} recalls: {ends.count('memory')} got their memory, {int(later != '')} came after it")
    print(f"longest {max(seconds):.2f} s (limit {HELD_LIMIT_SECONDS} s)")
    return ends == ["memory"] * CALLERS and max(seconds) <= HELD_LIMIT_SECONDS + MAX_LATE_SECONDS and later == ""


def main() -> int:
    """Run it; return 0 only if nothing grew, was late or was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recalls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    started = time.monotonic()
    soak = Soak(arguments.recalls, arguments.seed)
    with server_process("faulty_server.py", str(arguments.seed)) as base_url:
        before = ProcessState.now()
        soak.run(base_url)
        holds = soak.report(before, settled(before))
        holds = close_under_load(base_url) and holds
    print(f"{'Nothing was left behind.' if holds else 'SOMETHING IS WRONG.'} {time.monotonic() - started:.0f} s.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
