"""Replies that a proxy wrote, whole or broken off, in the way of questions, recalls and writes. A part of ``fuzz.py``.

Nothing but our errors comes out. What is claimed is compared with what the server has, and a write that the proxy answered
is never "not saved" or "not changed", for nobody knows whether it was passed on.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from parts import backend
from powercontext_support import SCOPE
from proxied_server import CONTEXT, ProxiedServer

from deerflow.agents.memory.backends.powercontext.api.client import PowerContextClient
from deerflow.agents.memory.backends.powercontext.api.memory_models import MemoryState
from deerflow.agents.memory.backends.powercontext.api.models import ArtifactReference, EntryCitation
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextError
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.recall.recalling import Recall
from deerflow.agents.memory.backends.powercontext.settings.loading import PowerContextSettings
from deerflow.agents.memory.backends.powercontext.settings.people import Binding
from deerflow.agents.memory.backends.powercontext.tools.changing import NotChanged
from deerflow.agents.memory.backends.powercontext.tools.changing import Unknown as UnknownChange
from deerflow.agents.memory.backends.powercontext.tools.correcting import Corrector
from deerflow.agents.memory.backends.powercontext.tools.forgetting import Forgetter
from deerflow.agents.memory.backends.powercontext.tools.outcomes import NotSaved, Unknown
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

SECONDS = 1.0
REFERENCE = ArtifactReference(family="atomic-memory", artifact_id="art_1", revision=1)
ENTRY = EntryCitation(memory_ref=ArtifactReference(family="memory", artifact_id="memory", revision=1), entry_id="mem_ent_1", entry_version_id="mem_ver_1")


def operations(client: PowerContextClient, binding: Binding) -> dict[str, Callable[[Deadline], object]]:
    """Return every operation of the client, by name."""
    return {
        "prepare_context": lambda deadline: client.prepare_context(binding, "refund", deadline=deadline),
        "remember_memory": lambda deadline: client.remember_memory(binding, "fact", "Refunds.", deadline=deadline),
        "search_memory": lambda deadline: client.search_memory(binding, "refund", deadline=deadline),
        "search_atomic_memory": lambda deadline: client.search_atomic_memory(binding, "refund", deadline=deadline),
        "capture_content_source": lambda deadline: client.capture_content_source(binding, "source", "Refunds.", {}, deadline=deadline),
        "get_stats": lambda deadline: client.get_stats(binding, deadline=deadline),
        "get_atomic_memory_state": lambda deadline: client.get_atomic_memory_state(binding, "art_1", deadline=deadline),
        "get_artifact_revision": lambda deadline: client.get_artifact_revision(binding, "art_1", 1, deadline=deadline),
        "replace_artifact": lambda deadline: client.replace_artifact(binding, REFERENCE, "fact", "Refunds.", deadline=deadline),
        "forget_atomic_memory": lambda deadline: client.forget_atomic_memory(binding, MemoryState(artifact=REFERENCE, state="active", state_version=0), deadline=deadline),
        "get_memory_manifest": lambda deadline: client.get_memory_manifest(binding, deadline=deadline),
        "get_memory_entry": lambda deadline: client.get_memory_entry(binding, ENTRY, deadline=deadline),
        "revise_memory_entry": lambda deadline: client.revise_memory_entry(binding, ENTRY, "fact", "Refunds.", deadline=deadline),
        "retire_memory_entry": lambda deadline: client.retire_memory_entry(binding, ENTRY, deadline=deadline),
        "list_memory_entries": lambda deadline: client.list_memory_entries(binding, deadline=deadline),
        "list_artifacts": lambda deadline: client.list_artifacts(binding, deadline=deadline),
        "list_atomic_memories": lambda deadline: client.list_atomic_memories(binding, "fact", None, deadline=deadline),
        "get_readiness": lambda deadline: client.get_readiness(deadline=deadline),
        "get_server_info": lambda deadline: client.get_server_info(binding, deadline=deadline),
        "get_capabilities": lambda deadline: client.get_capabilities(binding, deadline=deadline),
        "get_scope": lambda deadline: client.get_scope(binding, deadline=deadline),
    }


class Calls:
    """What is asked and written through the proxy, and what came of it."""

    def __init__(self, proxied: ProxiedServer, settings: PowerContextSettings, chance: random.Random) -> None:
        self.tally: Counter[str] = Counter()
        self._proxied = proxied
        self._chance = chance
        self._binding: Binding = settings.people.bindings[0]
        self._client = shared_client(settings)
        self._operations = list(operations(self._client, self._binding).items())
        self._recall, self._saver = Recall(self._client), Saver(settings)
        self._corrector, self._forgetter = Corrector(settings), Forgetter(settings)

    def ask(self) -> None:
        """Let one operation of the client meet the proxy; only a version may pass for missing, which a server before 1.3 has not."""
        name, operation = self._chance.choice(self._operations)
        self._proxied.always = True
        answer = self._own(operation)
        self._proxied.always = False
        assert answer is None, f"{name} took a proxy's page for an answer"

    def recall(self) -> None:
        """Recall: the text, or nothing."""
        text = self._own(lambda deadline: self._recall.recall(self._binding, "How are refund amounts kept?", deadline=deadline))
        assert text in (CONTEXT, None), "a recall took a proxy's page for memory"
        self.tally["recalled" if text else "not recalled"] += 1

    def save(self, number: int) -> None:
        """Save, and compare."""
        text = f"Fuzz entry{number}: the depot opens at six."
        before = self._proxied.proxied_writes
        outcome = self._saver.save(self._binding, "fact", text, deadline=Deadline.after(SECONDS))
        stored, proxied = self._proxied.texts[text], self._proxied.proxied_writes > before
        assert stored <= 1, "written twice"
        assert not isinstance(outcome, NotSaved) or not (stored or proxied), "not saved, of a write that a proxy answered"
        assert isinstance(outcome, NotSaved | Unknown) or stored, "saved, but the server has not got it"
        self.tally[f"save: {type(outcome).__name__}"] += 1

    def change(self, number: int) -> None:
        """Correct or forget the one memory, and compare."""
        before, writes = self._proxied.proxied_writes, self._proxied.writes
        citation = {"family": "atomic-memory", "artifact_id": "art_1", "revision": len(self._proxied.memory)}
        self._proxied.restore()
        outcome: Any
        if number % 2:
            outcome = self._corrector.correct(self._binding, citation, f"The depot opens at {number}.", deadline=Deadline.after(SECONDS))
            done = self._proxied.memory[-1] == f"The depot opens at {number}."
        else:
            outcome = self._forgetter.forget(self._binding, citation, deadline=Deadline.after(SECONDS))
            done = self._proxied.forgotten
        proxied = self._proxied.proxied_writes > before
        assert self._proxied.writes - writes <= 1, "a write was repeated"
        assert not isinstance(outcome, NotChanged) or not (done or proxied), "not changed, of a write that a proxy answered"
        assert isinstance(outcome, NotChanged | UnknownChange) or done, "changed, but it is as it was"
        self.tally[f"change: {type(outcome).__name__}"] += 1

    def _own(self, operation: Callable[[Deadline], object]) -> object:
        """Return the result, ``None`` for our error; anything else is raised."""
        try:
            return operation(Deadline.after(SECONDS))
        except PowerContextError as error:
            assert (error.__context__, error.__cause__) == (None, None), "a foreign error hangs on ours"
            assert not re.search(f"{SCOPE}|proxy's", str(error)), "a private word, or the proxy's, in the message"
            self.tally[type(error).__name__] += 1
            return None


def fuzz_proxies(count: int, chance: random.Random) -> Counter[str]:
    """Let ``count`` calls of every kind meet a proxy's replies."""
    proxied = ProxiedServer(chance)
    with proxied.server as server, backend(server.base_url, remember_timeout_seconds=str(SECONDS)) as (_, _, settings):
        calls = Calls(proxied, settings, chance)
        for number in range(count):
            kind = chance.random()
            if kind < 0.5:
                calls.ask()
            elif kind < 0.7:
                calls.recall()
            elif kind < 0.9:
                calls.save(number)
            else:
                calls.change(number)
    return calls.tally
