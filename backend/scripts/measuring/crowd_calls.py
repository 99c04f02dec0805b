"""What the people of ``crowd.py`` do, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import threading
from collections import Counter
from typing import Any

from deerflow_extension_api.plugins import ModelTool
from devhost.plugins import Registry, call_tool
from powercontext_support.byte_server import Request
from powercontext_support.relay import Passage
from powercontext_support.replies import error

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager, remember_tool

MARK = re.compile(r"mark(\d+)n\d+")
ARTIFACT = re.compile(r"art_[0-9a-f]{32}")
SCOPE = re.compile(r"scp_[0-9a-z]{26}")
STRANGERS = 5


def user(number: int) -> str:
    """Return a user id; every second one differs from its neighbour in case alone, every third is the start of another."""
    return f"person-{number // 2}-{'Abc' if number % 2 else 'abc'}" + "x" * (number % 3)


class Evidence(logging.Handler):
    """Keeps what is logged, and what was found to be somebody else's."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.wrong: list[str] = []
        self.calls: Counter[str] = Counter()
        self.shown: dict[int, set[str]] = {}  # the citations each person was shown
        self._notes = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line, with its exception."""
        self.lines.append(self.format(record))

    def note(self, kind: str, outcome: str, person: int, answer: str, given: str = "") -> None:
        """Note what came back to ``person`` (one without a binding is beyond the last), who gave ``given``."""
        foreign = {int(mark) for mark in MARK.findall(answer.replace(given, ""))} - {person}
        with self._notes:
            self.calls[f"{kind}: {outcome}"] += 1
            self.shown.setdefault(person, set()).update(set(ARTIFACT.findall(answer)) - set(ARTIFACT.findall(given)))
            if foreign:
                self.wrong.append(f"{kind}: an answer has another person's text")


class Crowd:
    """The people, their Scopes and tokens, and the calls."""

    def __init__(self, evidence: Evidence, entries: list[dict[str, str]], default_token: str, seed: int) -> None:
        self.evidence = evidence
        self.scopes = [entry["scope_id"] for entry in entries]
        self.tokens = [entry.get("token", default_token) for entry in entries]
        self.citations: dict[int, list[dict[str, Any]]] = {}
        self.kept: dict[int, set[str]] = {}  # texts that were saved and that their owner never touched again
        registry = Registry()
        remember_tool.install(registry, {})
        self.tools: dict[str, ModelTool] = {tool.name: tool for tool in registry.contributions["powercontext"].tools}
        self.manager = PowerContextMemoryManager(backend_config={})
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def chance(self) -> float:
        """Return the seed's next number."""
        with self._lock:
            return self._random.random()

    def passage(self, request: Request) -> Passage:
        """Harm four requests of ten."""
        harm, amount = self.chance(), self.chance()
        if harm < 0.6 or request.path == "/health/ready":
            return Passage()
        if harm < 0.66:
            return Passage(request=False)
        if harm < 0.74:
            return Passage(reply_bytes=int(amount * 600))
        if harm < 0.82:
            return Passage(delay_seconds=1.5 * amount)
        if harm < 0.9:
            return Passage(spoil=True)
        status, code = ((401, "unauthorized"), (404, "scope_not_found"), (503, "server_overloaded"), (500, "internal_error"))[int(amount * 4)]
        return Passage(instead=error(status, code).raw())

    async def call(self, number: int) -> None:
        """Make one call of a random kind, for a random person or a stranger."""
        person = int(self.chance() * (len(self.scopes) + STRANGERS))
        text = f"The ferry mark{person}n{number} to the island leaves from pier {number}."
        draw = self.chance()
        if draw < 0.35:
            answer = await self.manager.aget_context(user(person), query="Where does the ferry to the island leave from?")
            self.evidence.note("first turn", "text" if answer else "no text", person, answer)
        elif draw < 0.7:
            result = await self._use("remember", person, {"text": text, "kind": "fact"})
            if result.get("outcome") in ("saved", "already_saved"):
                with self._lock:
                    self.kept.setdefault(person, set()).add(text)
                    self.citations.setdefault(person, []).append({"citation": result["citation"], "text": text})
        elif draw < 0.85:
            await self._use("recall", person, {"query": "ferry island pier"})
        else:
            await self._change("forget" if draw < 0.92 else "correct", person, text)

    async def _change(self, name: str, person: int, text: str) -> None:
        """Correct or forget a memory: one's own, or every second time somebody else's."""
        with self._lock:
            others = [other for other in self.citations if other != person]
            owner = self._random.choice(others) if others and self._random.random() < 0.5 else person
            known = self.citations.get(owner) or [{"citation": {"family": "atomic-memory", "artifact_id": "art_" + "0" * 32, "revision": 1}, "text": ""}]
            chosen = self._random.choice(known)
            if owner == person:
                self.kept.get(person, set()).discard(chosen["text"])
        result = await self._use(name, person, {"citation": chosen["citation"]} | ({"text": text} if name == "correct" else {}), given=json.dumps(chosen["citation"]))
        if owner != person and result.get("outcome") in ("forgotten", "already_forgotten", "corrected"):
            self.evidence.wrong.append(f"{name}: another person's memory was changed")

    async def _use(self, name: str, person: int, arguments: dict[str, Any], given: str = "") -> dict[str, Any]:
        message = await call_tool(self.tools[name], arguments, {"user_id": user(person)})
        result: dict[str, Any] = json.loads(message.content) if message.status == "success" else {}
        self.evidence.note(name, str(result.get("outcome", "text" if result else "error")), person, message.content, given)
        return result

    def run(self, calls: int, threads: int) -> None:
        """Make ``calls`` calls from ``threads`` threads, each with an event loop of its own."""
        numbers = iter(range(calls))

        def worker() -> None:
            with asyncio.Runner() as runner:
                while (number := self._next(numbers)) is not None:
                    runner.run(self.call(number))

        running = [threading.Thread(target=worker) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def _next(self, numbers: Any) -> int | None:
        with self._lock:
            return next(numbers, None)
