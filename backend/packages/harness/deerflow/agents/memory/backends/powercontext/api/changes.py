"""One memory: how it stands, and PowerContext's operations that correct or forget it."""

from __future__ import annotations

from urllib.parse import quote

from ..deadline import Deadline
from ..errors import PowerContextResponseError
from ..settings.people import Binding
from ..transport.exchange import Request, Transport
from .memory_models import EntryReply, LifecycleReply, MemoryEntry, MemoryManifest, MemoryRevision, MemoryState
from .models import ArtifactReference, EntryCitation
from .requests import MAX_SEARCH_RESPONSE_BYTES, get, post, put, success


class ChangeOperations:
    """The part of the client that reads and changes one memory."""

    _transport: Transport

    def get_atomic_memory_state(self, binding: Binding, artifact_id: str, *, deadline: Deadline) -> MemoryState:
        """Return a memory's present revision and state (1.3 and later)."""
        request = get("get_atomic_memory_state", f"{_artifact(binding, 'atomic-memory', artifact_id)}/state", binding)
        state = MemoryState.parse(*success(request, self._transport.exchange(request, deadline)))
        _check(state.artifact.artifact_id == artifact_id, request)
        return state

    def get_artifact_revision(
        self,
        binding: Binding,
        artifact_id: str,
        revision: int,
        *,
        deadline: Deadline,
    ) -> MemoryRevision:
        """Return one revision of a memory, whatever came after it (1.3 and later)."""
        request = get(
            "get_artifact_revision",
            f"{_artifact(binding, 'atomic-memory', artifact_id)}/revisions/{revision}",
            binding,
        )
        memory = MemoryRevision.parse(*success(request, self._transport.exchange(request, deadline)))
        named = (memory.scope_id, memory.artifact.artifact_id, memory.artifact.revision)
        _check(named == (binding.scope_id.get_secret_value(), artifact_id, revision), request)
        return memory

    def replace_artifact(
        self,
        binding: Binding,
        reference: ArtifactReference,
        kind: str,
        text: str,
        *,
        deadline: Deadline,
    ) -> MemoryRevision:
        """Make ``text`` the next revision of a memory, if ``reference`` is still the present one (1.3 and later).

        It goes on a connection of its own.

        The server does it to a forgotten memory, too, and leaves that forgotten.
        """
        path = _artifact(binding, "atomic-memory", reference.artifact_id)
        request = put(
            "replace_artifact",
            path,
            binding,
            {"content": {"kind": kind, "text": text}},
            if_match=f'"revision:{reference.revision}"',
        )
        memory = MemoryRevision.parse(*success(request, self._transport.exchange(request, deadline)))
        done = (memory.scope_id, memory.artifact.artifact_id, memory.kind, memory.text)
        wanted = (binding.scope_id.get_secret_value(), reference.artifact_id, kind, text)
        _check(done == wanted and memory.artifact.revision > reference.revision, request)
        return memory

    def forget_atomic_memory(self, binding: Binding, state: MemoryState, *, deadline: Deadline) -> MemoryState:
        """Forget a memory, if ``state`` is still the present one, on a connection of its own (1.3 and later)."""
        target = {"artifact": state.artifact.model_dump(), "state_version": state.state_version}
        payload = {"scope_id": binding.scope_id.get_secret_value(), "target": target, "state": "forgotten"}
        request = post("change_atomic_memory_lifecycle", "/v1/atomic-memory/lifecycle", binding, payload, writes=True)
        [after] = LifecycleReply.parse(*success(request, self._transport.exchange(request, deadline))).records
        _check((after.artifact, after.state) == (state.artifact, "forgotten"), request)
        return after

    def get_memory_manifest(self, binding: Binding, *, deadline: Deadline) -> MemoryManifest:
        """Return the Scope's Memory without texts (before 1.3)."""
        request = get(
            "get_artifact",
            _artifact(binding, "memory", "memory"),
            binding,
            max_response_bytes=MAX_SEARCH_RESPONSE_BYTES,
        )
        return MemoryManifest.parse(*success(request, self._transport.exchange(request, deadline)))

    def get_memory_entry(self, binding: Binding, citation: EntryCitation, *, deadline: Deadline) -> MemoryEntry:
        """Return an entry as it was in the Memory's revision that ``citation`` names (before 1.3)."""
        payload = {"scope_id": binding.scope_id.get_secret_value(), "citation": citation.model_dump()}
        request = post("get_memory_entry", "/v1/memory/entries/get", binding, payload)
        entry = MemoryEntry.parse(*success(request, self._transport.exchange(request, deadline)))
        _check(entry.citation == citation, request)
        return entry

    def revise_memory_entry(
        self,
        binding: Binding,
        citation: EntryCitation,
        kind: str,
        text: str,
        *,
        deadline: Deadline,
    ) -> MemoryEntry:
        """Change an entry, if nothing was written to its Memory since ``citation`` (servers before 1.3).

        It goes on a connection of its own.
        """
        payload = {
            "scope_id": binding.scope_id.get_secret_value(),
            "citation": citation.model_dump(),
            "kind": kind,
            "text": text,
        }
        request = post("revise_memory_entry", "/v1/memory/entries/revise", binding, payload, writes=True)
        entry = EntryReply.parse(*success(request, self._transport.exchange(request, deadline))).entry
        _check(
            (entry.citation.entry_id, entry.kind, entry.text, entry.state) == (citation.entry_id, kind, text, "active"),
            request,
        )
        return entry

    def retire_memory_entry(self, binding: Binding, citation: EntryCitation, *, deadline: Deadline) -> MemoryEntry:
        """Take an entry out of use, if nothing was written to its Memory since ``citation`` (servers before 1.3).

        It goes on a connection of its own.
        """
        payload = {"scope_id": binding.scope_id.get_secret_value(), "citation": citation.model_dump()}
        request = post("retire_memory_entry", "/v1/memory/entries/retire", binding, payload, writes=True)
        entry = EntryReply.parse(*success(request, self._transport.exchange(request, deadline))).entry
        _check((entry.citation.entry_id, entry.state) == (citation.entry_id, "inactive"), request)
        return entry


def _artifact(binding: Binding, family: str, artifact_id: str) -> str:
    return f"/v1/scopes/{quote(binding.scope_id.get_secret_value(), safe='')}/artifacts/{family}/{quote(artifact_id, safe='')}"


def _check(is_about_it: bool, request: Request) -> None:
    if not is_about_it:
        raise PowerContextResponseError("the reply is about something that was not asked", operation=request.operation)
