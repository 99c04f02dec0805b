"""What a recall costs, beside a raw socket, httpx and PowerContext's own client. ``make bench`` runs it.

All of them ask the same canned server, in another process on loopback, in rounds of random order, so that whatever else
the machine does falls on each of them. Then recall and saving are measured on a real PowerContext server.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import trustme
from bench_contenders import BESIDE, FOCUSED, FULL, HTTPX, REQUEST, Call, contenders, httpx_call, recall_call
from bench_real_server import measure_real_server
from parts import in_threads, server_process
from powercontext_support.real_server import find_executable
from report import machine, percentile, replace_section, spread, table

THREADS = (1, 8, 64)


@dataclass(frozen=True)
class Size:
    """How much to measure.

    Attributes:
        rounds: Of each contender over kept connections; half as many over cold ones.
        calls: Of a contender in a round over kept connections; a third over cold ones.
        load_rounds: Of each contender and number of threads.
        load_seconds: Of such a round.
        memories: In the real server's Scope.
        real_calls: Of each operation on the real server.
    """

    rounds: int = 24
    calls: int = 50
    load_rounds: int = 5
    load_seconds: float = 0.3
    memories: int = 1000
    real_calls: int = 100


QUICK = Size(rounds=4, calls=6, load_rounds=1, load_seconds=0.1, memories=20, real_calls=10)


def take_turns(url: str, rounds: int, calls: int, order: random.Random) -> dict[str, list[float]]:
    """Return each contender's median of each round, in milliseconds; round by round they belong together."""
    medians: dict[str, list[float]] = defaultdict(list)
    with contenders(url) as all_of_them:
        for contender in all_of_them:
            medians[contender.name] = []
            contender.run(3)
        for _ in range(rounds):
            for contender in order.sample(all_of_them, len(all_of_them)):
                durations = contender.run(max(1, round(calls * contender.share)))
                medians[contender.name].append(statistics.median(durations) * 1000)
    return medians


def cost_table(urls: dict[str, str], size: Size, order: random.Random) -> str:
    """Measure one caller over kept and cold connections, plain and TLS, and return the table."""
    columns = {}
    for name, url in urls.items():
        cold = name.startswith("cold")
        columns[name] = take_turns(url, size.rounds // 2 if cold else size.rounds, size.calls // 3 if cold else size.calls, order)
    rows = []
    for contender in columns["warm plain"]:
        row = [contender]
        for medians in columns.values():
            ratios = [one / other for one, other in zip(medians[contender], medians[BESIDE.get(contender, HTTPX)], strict=True)]
            row.append(f"{spread(medians[contender])} x{statistics.median(ratios):.2f}")
        rows.append(row)
    return table(["ms a call", *columns], rows)


def load(call: Call, threads: int, seconds: float) -> tuple[float, float, int]:
    """Call from ``threads`` threads for ``seconds``; return the calls a second, the p99 in milliseconds and the failures."""
    durations: list[list[float]] = [[] for _ in range(threads)]
    failures = [0] * threads
    together = threading.Barrier(threads)

    def work(number: int) -> None:
        together.wait()
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            try:
                failures[number] += not call()
            except httpx.HTTPError:
                failures[number] += 1
            durations[number].append(time.perf_counter() - started)

    in_threads(threads, work)
    everything = [duration for some in durations for duration in some]
    longest = max(sum(some) for some in durations)
    return len(everything) / longest, percentile(everything, 0.99) * 1000, sum(failures)


def load_table(urls: dict[str, str], size: Size, order: random.Random) -> str:
    """Measure many callers over kept connections and return the table."""
    seen: dict[tuple[str, int, str], list[tuple[float, float, int]]] = defaultdict(list)
    with ExitStack() as stack:
        calls: dict[tuple[str, str], Call] = {}
        for kind in ("plain", "TLS"):
            url = urls[f"warm {kind}"]
            calls[kind, HTTPX] = stack.enter_context(httpx_call(url))
            calls[kind, FULL] = stack.enter_context(recall_call(url, "full"))
            calls[kind, FOCUSED] = stack.enter_context(recall_call(url, "focused"))
        keys = [(kind, threads, name) for kind, name in calls for threads in THREADS]
        for kind, threads, name in keys:
            load(calls[kind, name], threads, 0.05)  # so that the connections are open
        for _ in range(size.load_rounds):
            for kind, threads, name in order.sample(keys, len(keys)):
                seen[kind, threads, name].append(load(calls[kind, name], threads, size.load_seconds))
    rows = []
    for key in sorted(keys, key=lambda key: (key[0] != "plain", key[1], key[2] != HTTPX)):
        rates, p99s, failures = zip(*seen[key], strict=True)
        name = f"{key[0]}, {key[1]} thread{'s' * (key[1] > 1)}, {key[2]}"
        rows.append([name, spread(list(rates)), spread(list(p99s)), str(sum(failures))])
    return table(["warm connections", "calls a second", "p99 in ms", "failed"], rows)


def measure(folder: Path, executable: str, size: Size, seed: int) -> str:
    """Measure everything and return the section's Markdown."""
    order = random.Random(seed)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    os.environ["SSL_CERT_FILE"] = str(folder / "authority.pem")
    # PowerContext's client would look into the user's home.
    os.environ["POWERCONTEXT_CLIENT_CONFIG_FILE"] = str(folder / "no-clients.json")
    with server_process("canned_server.py", str(folder / "server.pem")) as urls:
        cost = cost_table(urls, size, order)
        many = load_table(urls, size, order)
    real = measure_real_server(folder, executable, memories=size.memories, calls=size.real_calls, seed=seed)
    facts = {"seed": seed, "machine": machine(), "characters": len(REQUEST), "memories": size.memories, "calls": size.real_calls}
    return TEXT.format(**facts, cost=cost, many=many, real=real)


TEXT = """\
`make bench`, seed {seed}. {machine}

One caller; the reply is a recorded one of 1 KB, and the server, another process, answers at once. Medians of round medians,
with p10-p90 of the round medians in brackets; "x" is the median of the rounds' ratios to httpx. Warm calls find their
connection open, cold ones open one each (the server closes it after its reply). "full" and "focused" are values of
`RECALL_QUERY`; focused is two requests, search and prepare, with choosing between them and finding the words of a request of
{characters} characters, and its "x" is the ratio to the same two requests through httpx, which finds and chooses nothing.
PowerContext's client is asynchronous: a synchronous caller needs a loop in a thread, or a loop and a new client for each call.

{cost}

Many callers of one client or manager (ours holds 16 connections, httpx up to 100). Medians of rounds, with p10-p90 in
brackets. "Failed" counts calls without an answer: httpx's pool may close a connection that another thread was just given.

{many}

A real PowerContext server with {memories} memories in the Scope, {calls} calls of each, one after the other:

{real}
"""


def main() -> int:
    """Run the bench; print it, and write it down if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the section 'Cost of a recall' of docs/BENCHMARKS.md")
    parser.add_argument("--quick", action="store_true", help="measure next to nothing, to see that it runs")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="powercontext-bench-") as name:
        section = measure(Path(name), executable, QUICK if arguments.quick else Size(), arguments.seed)
    print(section)
    if arguments.write:
        replace_section("Cost of a recall", section)
    print(f"Done in {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
