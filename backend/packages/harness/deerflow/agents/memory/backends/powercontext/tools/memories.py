"""One memory, read and changed, on servers of either generation.

Every change is conditional on what was read: the server refuses it if the memory was changed meanwhile. Servers before
1.3 refuse it after any write to the Scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..api.client import PowerContextClient
from ..api.memory_models import MemoryState
from ..api.models import ArtifactReference, Citation, EntryCitation
from ..deadline import Deadline
from ..errors import PowerContextError
from ..settings.people import Binding
from .citations import Cited, CitedEntry, CitedMemory

State = Literal["active", "forgotten", "set_aside"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a memory says at a moment.

    Attributes:
        citation: Names it as it stands.
        kind: Its kind.
        text: Its text.
        state: ``set_aside`` if it was merged into another memory, or retired by the server.
        state_version: Counts the changes of ``state``; always 0 before 1.3.
    """

    citation: Citation
    kind: str = field(repr=False)
    text: str = field(repr=False)
    state: State = "active"
    state_version: int = 0


class Memory(Protocol):
    """One memory of one person.

    Every method raises the client's errors; one of a server that has no such memory is a 404.
    """

    def read(self, deadline: Deadline) -> Standing | None:
        """Return how it stands, or ``None`` if there is no such memory."""

    def is_meant(self, standing: Standing, deadline: Deadline) -> bool:
        """Tell whether ``standing`` has the kind and the text that the citation meant."""

    def forget(self, standing: Standing, deadline: Deadline) -> Standing:
        """Forget it, if ``standing`` still holds, and return how it stands then."""

    def correct(self, standing: Standing, kind: str, text: str, deadline: Deadline) -> Standing:
        """Change its kind and text, if ``standing`` still holds, and return how it stands then."""


def memory_of(client: PowerContextClient, binding: Binding, cited: Cited) -> Memory:
    """Return the memory that is cited. No request."""
    if isinstance(cited, CitedMemory):
        return AtomicMemory(client, binding, cited)
    return MemoryOfEntry(client, binding, cited)


@dataclass(frozen=True, slots=True)
class AtomicMemory:
    """A memory since 1.3."""

    client: PowerContextClient
    binding: Binding
    cited: CitedMemory

    def read(self, deadline: Deadline) -> Standing:
        """Return how it stands: the state first, for a revision never changes."""
        state = self.client.get_atomic_memory_state(self.binding, self.cited.artifact_id, deadline=deadline)
        memory = self.client.get_artifact_revision(
            self.binding,
            self.cited.artifact_id,
            state.artifact.revision,
            deadline=deadline,
        )
        return Standing(memory.artifact, memory.kind, memory.text, _state(state), state.state_version)

    def is_meant(self, standing: Standing, deadline: Deadline) -> bool:
        """Compare with the cited revision: one that was only restored, or written again, says the same."""
        if self.cited.revision is None or self.cited.revision == _reference(standing).revision:
            return True
        cited = self.client.get_artifact_revision(
            self.binding,
            self.cited.artifact_id,
            self.cited.revision,
            deadline=deadline,
        )
        return (cited.kind, cited.text) == (standing.kind, standing.text)

    def forget(self, standing: Standing, deadline: Deadline) -> Standing:
        """Forget it."""
        state = MemoryState(artifact=_reference(standing), state="active", state_version=standing.state_version)
        after = self.client.forget_atomic_memory(self.binding, state, deadline=deadline)
        return Standing(after.artifact, standing.kind, standing.text, "forgotten", after.state_version)

    def correct(self, standing: Standing, kind: str, text: str, deadline: Deadline) -> Standing:
        """Write the next revision, and look whether the memory was forgotten just before.

        The server takes it all the same.
        """
        after = self.client.replace_artifact(self.binding, _reference(standing), kind, text, deadline=deadline)
        try:
            state = self.client.get_atomic_memory_state(self.binding, self.cited.artifact_id, deadline=deadline)
        except PowerContextError:  # the correction is confirmed, whatever becomes of this question
            return Standing(after.artifact, after.kind, after.text, standing.state, standing.state_version)
        return Standing(after.artifact, after.kind, after.text, _state(state), state.state_version)


@dataclass(frozen=True, slots=True)
class MemoryOfEntry:
    """A memory before 1.3: an entry of the Scope's one Memory."""

    client: PowerContextClient
    binding: Binding
    cited: CitedEntry

    def read(self, deadline: Deadline) -> Standing | None:
        """Return how it stands in the Memory's present revision, whatever revision was cited."""
        manifest = self.client.get_memory_manifest(self.binding, deadline=deadline)
        versions = [entry.entry_version_id for entry in manifest.entries if entry.entry_id == self.cited.entry_id]
        if not versions:
            return None
        citation = EntryCitation(
            memory_ref=manifest.memory_ref,
            entry_id=self.cited.entry_id,
            entry_version_id=versions[0],
        )
        entry = self.client.get_memory_entry(self.binding, citation, deadline=deadline)
        return Standing(entry.citation, entry.kind, entry.text, "active" if entry.state == "active" else "forgotten")

    def is_meant(self, standing: Standing, deadline: Deadline) -> bool:
        """Compare with the cited version of its text."""
        now, version = _entry(standing), self.cited.entry_version_id
        if version is None or version == now.entry_version_id:
            return True
        if self.cited.memory_revision is None:
            return False
        memory_ref = now.memory_ref.model_copy(update={"revision": self.cited.memory_revision})
        citation = EntryCitation(memory_ref=memory_ref, entry_id=now.entry_id, entry_version_id=version)
        cited = self.client.get_memory_entry(self.binding, citation, deadline=deadline)
        return (cited.kind, cited.text) == (standing.kind, standing.text)

    def forget(self, standing: Standing, deadline: Deadline) -> Standing:
        """Retire the entry."""
        after = self.client.retire_memory_entry(self.binding, _entry(standing), deadline=deadline)
        return Standing(after.citation, after.kind, after.text, "forgotten")

    def correct(self, standing: Standing, kind: str, text: str, deadline: Deadline) -> Standing:
        """Revise the entry; the server refuses it for one that was retired."""
        after = self.client.revise_memory_entry(self.binding, _entry(standing), kind, text, deadline=deadline)
        return Standing(after.citation, after.kind, after.text)


def _state(state: MemoryState) -> State:
    return state.state if state.state in ("active", "forgotten") else "set_aside"


def _reference(standing: Standing) -> ArtifactReference:
    assert isinstance(standing.citation, ArtifactReference)  # noqa: S101 - only AtomicMemory makes and takes these
    return standing.citation


def _entry(standing: Standing) -> EntryCitation:
    assert isinstance(standing.citation, EntryCitation)  # noqa: S101 - only MemoryOfEntry makes and takes these
    return standing.citation
