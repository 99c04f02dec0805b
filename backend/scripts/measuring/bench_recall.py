"""Measures on real servers what recall finds for prompts as people type them. ``make bench-recall`` runs it.

"dev" and "own" have 60 memories and 76 prompts each, 64 of them with a memory to find, in English and Chinese; recall was made
with both. "tongues" has 40 and 51 (39) in ten other languages; their word lists were made with it. "fresh" has 60 and 52 (40)
in nine languages and other domains; it was written before and looked at once, after all. "crossed" are the prompts of dev
asked of the memories of own and the reverse: what comes back is, as a rule, unrelated. With distractors there are 1,000
memories. "vectors" is a server with a static embedding model; "full" asks with the whole request, as ``RECALL_QUERY=full``.
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
from vector_server import reason_for_none, vector_server  # noqa: E402

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager  # noqa: E402
from deerflow.agents.memory.backends.powercontext.settings.loading import reset_settings  # noqa: E402

OWNER = "bench"
SETS = ("dev", "own", "tongues", "fresh")
DISTRACTED = ("dev", "own")
CROSSED = {"dev": "own", "own": "dev"}
EXPLANATION = (__doc__ or "").strip().splitlines()[2:]
ROW = "| {:<7} | {:<12} | {:<7} | {:>5} | {:>9} | {:>13} | {:>17} |"

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
        unrelated = f"{tally.unrelated / max(1, tally.answers):.2f} in {tally.answers}"
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
        if query == "focused" and name in CROSSED and not distractors:
            yield Line(version, f"crossed, {CROSSED[name]}", query, len(memories), measure(recall, CaseSet.load(CROSSED[name]).cases, memories))
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
                if distractors is None or name in DISTRACTED:
                    lines += show(lines_of(server, version, name, distractors))
    return lines


def run_with_vectors() -> list[Line]:
    """Measure a server with embeddings, where there can be one."""
    if reason := reason_for_none():
        print(f"(no server that searches vectors: {reason})")
        return []
    with tempfile.TemporaryDirectory(prefix="powercontext-bench-") as folder, vector_server(Path(folder)) as server:
        return [line for name in DISTRACTED for line in show(lines_of(server, "vectors", name, None))]


def show(lines: Iterator[Line]) -> Iterator[Line]:
    """Print each line as it comes."""
    for line in lines:
        print(line, flush=True)
        yield line


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-distractors", action="store_true", help="only 60 memories a Scope")
    parser.add_argument("--versions", nargs="+", default=["1.4.1", "1.2.0"])
    parser.add_argument("--write", action="store_true", help="into docs/BENCHMARKS.md")
    arguments = parser.parse_args()
    lines = run(arguments.versions, not arguments.no_distractors) + run_with_vectors()
    first = {line.part: line.tally for line in reversed(lines) if line.query == "focused" and line.part in SETS and line.version == arguments.versions[0]}
    kinds = ["", f"By the kind of prompt, {arguments.versions[0]}, focused, 60 memories:", "", *by_kind({name: first[name] for name in SETS})]
    print(*kinds, sep="\n")
    if arguments.write:
        replace_section("Finding", "\n".join([*EXPLANATION, "", *HEAD, *map(str, lines), *kinds]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
