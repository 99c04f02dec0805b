"""Measures on real servers what recall finds for prompts as people type them. ``make bench-recall`` runs it.

Each set has 60 memories and 76 prompts, 64 of them with a memory to find; with distractors there are 1,000 memories.
The query was made with the set "dev". The set "own" was written afterwards by somebody who had not seen the query;
then what it missed in one half was looked at, and in the other half never.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from powercontext_support.real_server import RealServer, find_executable  # noqa: E402
from powercontext_support.recall import CaseSet, Tally, measure  # noqa: E402
from report import replace_section  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.backends.powercontext.config import reset_settings  # noqa: E402

OWNER = "bench"
SETS = ("dev", "own")
EXPLANATION = (__doc__ or "").strip().splitlines()[2:]
ROW = "| {:<6} | {:<10} | {:<7} | {:>5} | {:>9} | {:>13} | {:>17} |"

HEAD = (ROW.format("server", "set", "query", "in it", "found", "false recalls", "unrelated/answer"), "|---|---|---|---|---|---|---|")


def manager_for(server: RealServer, scope_id: str, recall_query: str) -> PowerContextMemoryManager:
    """Return a manager of this process for a Scope, as an operator would configure it; the limit is raised for slow machines."""
    os.environ |= {
        "POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url,
        "POWERCONTEXT_DEERFLOW_OWNER_USER_ID": OWNER,
        "POWERCONTEXT_DEERFLOW_SCOPE_ID": scope_id,
        "POWERCONTEXT_DEERFLOW_TOKEN": server.token,
        "POWERCONTEXT_DEERFLOW_RECALL_QUERY": recall_query,
        "POWERCONTEXT_DEERFLOW_RECALL_TIMEOUT_SECONDS": "4",
    }
    reset_settings()
    return PowerContextMemoryManager(backend_config={"failure_policy": {"read": "fail_closed"}})


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    version: str
    part: str
    query: str
    memories: int
    tally: Tally

    def __str__(self) -> str:
        tally = self.tally
        unrelated = f"{tally.unrelated / max(1, tally.answers):.2f}"
        false_recalls = f"{tally.false_recalls} of {tally.expecting_none}"
        return ROW.format(self.version, self.part, self.query, self.memories, f"{tally.found} of {tally.expecting}", false_recalls, unrelated)


def lines_of(server: RealServer, version: str, name: str, distractors: CaseSet | None) -> Iterator[Line]:
    """Store a set, ask for all of its prompts, and yield what came of it."""
    cases = CaseSet.load(name)
    scope_id = server.create_scope(f"{name} {'with' if distractors else 'without'} distractors")
    memories = dict(cases.memories)
    for part in (cases, distractors):
        if part:
            part.store(server, scope_id)
            memories |= part.memories
    for query in ("focused", "full"):
        manager = manager_for(server, scope_id, query)
        recall = partial(recall_with, manager)
        yield Line(version, name, query, len(memories), measure(recall, cases.cases, memories))
        if query == "focused" and name == "own" and not distractors:
            yield Line(version, "own, seen", query, len(memories), measure(recall, cases.cases[::2], memories))
            yield Line(version, "own, aside", query, len(memories), measure(recall, cases.cases[1::2], memories))
        manager.close()


def recall_with(manager: PowerContextMemoryManager, prompt: str) -> str:
    """Recall as DeerFlow does."""
    return manager.get_context(OWNER, query=prompt)


def by_kind(tallies: dict[str, Tally]) -> Iterator[str]:
    """Yield a table of what was found, by the kind and language of the prompt."""
    yield "| prompts | " + " | ".join(tallies) + " |"
    yield "|---|" + "---|" * len(tallies)
    for category, language in sorted({kind for tally in tallies.values() for kind in tally.by_kind}):
        cells = (tally.by_kind[category, language] for tally in tallies.values())
        yield f"| {category}, {language} | " + " | ".join(f"{found} of {expecting}" for found, expecting in cells) + " |"


def run(versions: list[str], with_distractors: bool) -> list[Line]:
    """Measure everything, printing each line as it comes. Distractors go to the first version only: storing them takes minutes."""
    print(*HEAD, sep="\n", flush=True)
    lines: list[Line] = []
    for version in versions:
        executable = find_executable(version)
        if executable is None:
            print(f"(no PowerContext {version} here: make test-servers installs it)")
            continue
        sets: list[CaseSet | None] = [None]
        if with_distractors and version == versions[0]:
            sets.append(CaseSet.load("distractors"))
        with tempfile.TemporaryDirectory(prefix="powercontext-bench-") as folder, RealServer(Path(folder), executable=executable) as server:
            for distractors, name in itertools.product(sets, SETS):
                for line in lines_of(server, version, name, distractors):
                    print(line, flush=True)
                    lines.append(line)
    return lines


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-distractors", action="store_true", help="only 60 memories a Scope")
    parser.add_argument("--versions", nargs="+", default=["1.4.1", "1.2.0"])
    parser.add_argument("--write", action="store_true", help="into docs/BENCHMARKS.md")
    arguments = parser.parse_args()
    lines = run(arguments.versions, not arguments.no_distractors)
    first = {line.part: line.tally for line in reversed(lines) if line.query == "focused" and line.part in SETS and line.version == arguments.versions[0]}
    kinds = ["", f"By the kind of prompt, {arguments.versions[0]}, focused, 60 memories:", "", *by_kind({name: first[name] for name in SETS})]
    print(*kinds, sep="\n")
    if arguments.write:
        replace_section("Finding", "\n".join([*EXPLANATION, "", *HEAD, *map(str, lines), *kinds]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
