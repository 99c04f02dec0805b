"""How long it takes to find a memory by its exact text among 10,000, and whether each is found. Takes up to half an hour; by hand only.

A real PowerContext is filled with sentences of few words, 120 orders of the same five words and 69 spellings of one sentence of stop words.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from powercontext_support.real_server import RealServer, find_executable  # noqa: E402

from deerflow.agents.memory.backends.powercontext.deadline import Deadline  # noqa: E402
from deerflow.agents.memory.backends.powercontext.process import shared_client  # noqa: E402
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.exact_match import find  # noqa: E402
from deerflow.agents.memory.backends.powercontext.tools.outcomes import KINDS  # noqa: E402

LIMIT_SECONDS = 9.0
SUBJECTS = ("order service", "billing service", "Ada", "the user", "invoice export", "warehouse", "release", "team")
VERBS = ("opens", "closes", "uses", "prefers", "avoids", "ships", "tests", "reviews")
OBJECTS = ("integer cents", "floats", "pytest", "Fridays", "green tea", "tabs", "PostgreSQL", "the depot", "refunds", "six o'clock")

Memory = tuple[str, str]


def alike() -> list[Memory]:
    """Return memories that share all their words with more than a search returns."""
    orders = permutations(["amber", "basalt", "cobalt", "dune", "ember"])
    return [("fact", f"The row is {' '.join(order)}.") for order in orders] + [("fact", "I am Will" + "!" * number) for number in range(1, 70)]


def sentence(chance: random.Random) -> Memory:
    """Return a memory of a few ordinary words and a number."""
    words = (chance.choice(SUBJECTS), chance.choice(VERBS), chance.choice(OBJECTS), chance.choice(VERBS), chance.choice(OBJECTS))
    return chance.choice(KINDS), "{} {} {} and {} {} number {}.".format(*words, chance.randrange(3000))


def look_up(memories: Iterable[Memory], what: str) -> int:
    """Print how many of ``memories`` are found, and how long that took; return how many are not."""
    settings = load_settings()
    client, [binding] = shared_client(settings), settings.people.bindings
    seconds, missing = [], 0
    for kind, text in memories:
        started = time.perf_counter()
        missing += find(client, binding, kind, text, deadline=Deadline.after(LIMIT_SECONDS)) is None
        seconds.append(time.perf_counter() - started)
    seconds.sort()
    half, most = seconds[len(seconds) // 2] * 1000, seconds[int(len(seconds) * 0.95)] * 1000
    print(f"{what}: {len(seconds) - missing} of {len(seconds)} found; median {half:.0f} ms, 95 of 100 within {most:.0f} ms, slowest {seconds[-1] * 1000:.0f} ms")
    return missing


def main() -> int:
    """Fill a server and look up; return 0 only if each memory is found and no other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    arguments = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    logging.basicConfig(level=logging.ERROR)
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="powercontext-looking-up-") as name, RealServer(Path(name), executable=executable) as server:
        os.environ |= {
            "POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url,
            "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": "0b6a2d0e-9d7f-4c55-8f0e-2f6a1c9d7e40",
            "POWERCONTEXT_DEERFLOW_SCOPE_ID": server.create_scope("looking up"),
            "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
        }
        same = alike()
        others = [sentence(chance) for _ in range(arguments.memories - len(same))]
        for kind, text in chance.sample([*same, *others], arguments.memories):
            server.remember(os.environ["POWERCONTEXT_DEERFLOW_SCOPE_ID"], kind, text)
        missing = look_up(chance.sample(others, 80), "ordinary ones") + look_up(chance.sample(same, 60), "those alike")
        absent = [("fact", text.replace("number", "nimber")) for _, text in chance.sample(others, 80)]
        wrong = len(absent) - look_up(absent, "never stored")
    return 0 if not missing and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
