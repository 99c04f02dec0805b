"""Measures what a recall of two requests costs beside a single one, on a real server. ``make bench-recall-cost`` runs it.

Medians and 95th percentiles of one caller, and recalls a second of sixteen at once. "One request" is what recall was before
it searched and chose: the focused query, prepared.
The limit is 4 s. With sixteen at once one server is at its end: what takes longer has no memory, and the circuit breaker sends
others away at once, so that a higher figure is not a better one; both count here.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from bench_real_server import fill, memory, request  # noqa: E402
from parts import backend, in_threads  # noqa: E402
from powercontext_support import OWNER  # noqa: E402
from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from report import machine, percentile, replace_section, table  # noqa: E402

from deerflow.agents.memory.backends.powercontext.recall.query import focused_query  # noqa: E402

CALLERS = 16
EXPLANATION = (__doc__ or "").strip().splitlines()[2:]


def measure(server: RealServer, memories: int, calls: int, seed: int) -> list[list[str]]:
    """Return a row for each way to recall from a Scope with ``memories``."""
    choice = random.Random(seed)
    texts = [memory(number, choice) for number in range(memories)]
    requests = [request(text) for text in choice.choices(texts, k=calls)]
    rows = []
    with ExitStack() as stack:
        scope_id = server.create_scope(f"cost {memories}")
        fill(server, scope_id, texts)
        where = {"scope_id": scope_id, "token": server.token, "recall_timeout_seconds": "4"}
        one, *_ = stack.enter_context(backend(server.base_url, recall_query="full", **where))
        two, *_ = stack.enter_context(backend(server.base_url, recall_query="focused", **where))
        ways: dict[str, Callable[[str], str]] = {
            "one request": lambda text: one.get_context(OWNER, query=focused_query(text)),
            "search, choose, prepare": lambda text: two.get_context(OWNER, query=text),
        }
        for name, way in ways.items():
            alone = timed(way, requests[:5] + requests)[5:]
            started = time.perf_counter()
            many = together(way, requests)
            a_second = len(many) / (time.perf_counter() - started)
            cells = [f"{percentile(alone, 0.5):.0f}", f"{percentile(alone, 0.95):.0f}", f"{a_second:.0f}", f"{percentile(many, 0.95):.0f}"]
            rows.append([str(memories), name, *cells])
    return rows


def timed(way: Callable[[str], str], requests: list[str]) -> list[float]:
    """Return the milliseconds of each recall, one after the other."""
    durations = []
    for text in requests:
        started = time.perf_counter()
        way(text)
        durations.append((time.perf_counter() - started) * 1000)
    return durations


def together(way: Callable[[str], str], requests: list[str]) -> list[float]:
    """Return the milliseconds of each recall, ``CALLERS`` at a time."""
    left = iter(requests)
    durations: list[float] = []

    def work(_number: int) -> None:
        for text in left:
            durations.extend(timed(way, [text]))

    in_threads(CALLERS, work)
    return durations


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", nargs="+", type=int, default=[60, 1000, 5000])
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="into docs/BENCHMARKS.md")
    arguments = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("no PowerContext 1.4.1 here: make install", file=sys.stderr)
        return 2
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="powercontext-cost-") as folder, RealServer(Path(folder), executable=executable) as server:
        for memories in arguments.memories:
            rows += measure(server, memories, arguments.calls, arguments.seed)
            print(*rows[-2:], sep="\n", flush=True)
    text = table(["memories", "recall", "median in ms", "p95 in ms", f"{CALLERS} at once: a second", "p95 in ms"], rows)
    print(text)
    if arguments.write:
        replace_section("Two requests", "\n".join([*EXPLANATION, "", f"`make bench-recall-cost`, seed {arguments.seed}. {machine()}", "", text]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
