"""Measures what a recall finds: prompts as people type them, the memories they should bring back, and others that they should not."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .real_server import RealServer

FOLDER = Path(__file__).parent / "recall_cases"


@dataclass(frozen=True)
class CaseSet:
    """Memories by id, and prompts with the ids they should and may bring back.

    ``dev`` is the set the query was made with. ``own`` was written afterwards, by somebody who had not seen the code.
    """

    memories: dict[str, dict[str, str]]
    cases: list[dict[str, Any]]

    @classmethod
    def load(cls, name: str) -> CaseSet:
        """Read the set of this name."""
        content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        return cls({memory["id"]: memory for memory in content["memories"]}, content.get("cases", []))

    def store(self, server: RealServer, scope_id: str) -> None:
        """Store the memories through PowerContext's own API."""
        for memory in self.memories.values():
            server.remember(scope_id, memory["kind"], memory["text"])


@dataclass
class Tally:
    """What a set's prompts brought back.

    Attributes:
        found: Prompts that brought back one of the expected memories, of ``expecting``.
        false_recalls: Prompts that expect nothing and brought something back, of ``expecting_none``.
        unrelated: Memories brought back that are neither expected nor acceptable, in ``answers`` answers.
        by_kind: Found and expecting, by the prompt's category and language.
    """

    found: int = 0
    expecting: int = 0
    false_recalls: int = 0
    expecting_none: int = 0
    unrelated: int = 0
    answers: int = 0
    by_kind: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, case: dict[str, Any], recalled: set[str]) -> None:
        """Count one prompt that brought back the memories with the ids ``recalled``."""
        self.answers += bool(recalled)
        self.unrelated += len(recalled - {*case["expected"], *case["also_ok"]})
        if not case["expected"]:
            self.expecting_none += 1
            self.false_recalls += bool(recalled)
            return
        found = bool(recalled & set(case["expected"]))
        self.found += found
        self.expecting += 1
        kind = self.by_kind[case["category"], case["lang"]]
        kind[0] += found
        kind[1] += 1


def measure(recall: Callable[[str], str], cases: Iterable[dict[str, Any]], memories: dict[str, dict[str, str]]) -> Tally:
    """Ask ``recall`` for each case's prompt and count what comes back, by the texts in it."""
    tally = Tally()
    for case in cases:
        context = recall(case["prompt"])
        tally.add(case, {memory_id for memory_id, memory in memories.items() if memory["text"] in context})
    return tally


def remembering(server: RealServer, title: str, form: str) -> tuple[str, list[dict[str, str]]]:
    """Store the ``form`` of twenty utterances, and return the Scope and the utterances.

    The ``stored`` form is what the tool's description asks of a model, the ``bare`` one what it would write without.
    """
    cases = json.loads((FOLDER / "remembering.json").read_text(encoding="utf-8"))["cases"]
    scope_id = server.create_scope(title)
    for case in cases:
        server.remember(scope_id, "fact", case[form])
    return scope_id, cases
