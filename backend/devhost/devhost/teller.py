"""What the demo prints: a short story, and with ``VERBOSE=1`` everything that was sent and came back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 112

Cited = Mapping[str, Any] | str | None
"""What names a memory: a citation, or the id of a fact."""


class Teller:
    """Prints the story, and counts the checks and those that failed."""

    def __init__(self, command: str) -> None:
        """``command`` is how one starts this story."""
        self._command = command
        self.verbose = os.environ.get("VERBOSE", "0") not in ("", "0")
        self.checks = self.failed = 0
        self._part = 0

    def part(self, title: str) -> None:
        """Begin the next part of the story."""
        self._part += 1
        print(f"\n{self._part}. {title}", flush=True)

    def say(self, who: str, text: str, end: str = "") -> None:
        """Print in one line what somebody says, or what is there; a long text is cut before ``end``."""
        room = WIDTH - 18 - len(end)
        print(f"   {who + ':':<14} {text if len(text) <= room else text[: room - 1].rstrip() + '…'}{end}")

    def detail(self, lead: str, text: str) -> None:
        """Print ``text`` line by line, with ``VERBOSE=1`` only."""
        if self.verbose:
            print("\n".join(f"   {lead:<14} {line}" for line in text.splitlines()))

    def check(self, claim: str, holds: bool) -> None:
        """Print a claim and whether it holds."""
        self.checks += 1
        self.failed += not holds
        print(f"   {'ok    ' if holds else 'FAILED'} {claim}", flush=True)

    def call(self, tool: str, arguments: Mapping[str, Any], content: str, told: Sequence[tuple[str, Cited]]) -> None:
        """Print a tool's call and what the model gets back: ``content``, or in the short story the texts of it that are ``told``."""
        if self.verbose:
            self.detail("model calls:", f"{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})")
            self.detail("result:", content)
            return
        cited = "".join(_cited(arguments.get(name)) for name in ("citation", "fact_id"))
        words = [repr(value) for name, value in arguments.items() if name != "fact_id" and isinstance(value, str)][:1]
        self.say("model calls", " ".join([f"{tool}{cited}", *words]))
        for text, citation in told:
            self.say("result", text, _cited(citation))

    def messages(self, messages: Sequence[Mapping[str, str]]) -> None:
        """Print what the model is sent: of the memory block, the memories and their citations."""
        for message in messages:
            self.detail(f"{message['role']} |", message["content"])
            if self.verbose:
                continue
            if message.get("name") != "memory":
                self.say(message["role"], message["content"])
                continue
            pattern = r'id="(\w+)", revision=(\d+)$.*?^>\s+(.*?)$'
            for artifact_id, revision, text in re.findall(pattern, message["content"], re.MULTILINE | re.DOTALL):
                self.say("memory", text, _cited({"artifact_id": artifact_id, "revision": revision}))

    def end(self, seconds: float) -> None:
        """Print how it went, and what to do next."""
        if self.failed:
            print(f"\n{self.failed} of {self.checks} checks failed. {seconds:.1f} s.")
            return
        print(f"\nEverything above was checked ({self.checks} checks). {seconds:.1f} s.")
        if not self.verbose:
            print(f"All requests, replies and log lines: {self._command} VERBOSE=1")
        print("Next, with a DeerFlow of your own:   make apply DEERFLOW=../deer-flow")


def _cited(citation: Cited) -> str:
    """Return which memory is meant, and in which revision. A fact's id is its citation, written as ``family@id@revision``."""
    if not citation:
        return ""
    artifact_id, revision = citation.split("@")[1:3] if isinstance(citation, str) else (citation["artifact_id"], citation["revision"])
    return f" [{artifact_id[:8]}…, revision {revision}]"
