"""What we read of memories beside their saving.

That is one of them, to forget or correct it, and those that a search of 1.3 and later finds.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from .models import ArtifactReference, EntryCitation, Hit, Response


class MemoryState(Response):
    """``GET …/atomic-memory/{artifact_id}/state``, and a record of ``POST /v1/atomic-memory/lifecycle``.

    Attributes:
        artifact: The present revision.
        state_version: Counts the changes of ``state``, which are no revisions.
    """

    artifact: ArtifactReference
    state: Literal["active", "forgotten", "merged", "retired"]
    state_version: int = Field(ge=0)


class LifecycleReply(Response):
    """``POST /v1/atomic-memory/lifecycle``."""

    records: list[MemoryState] = Field(min_length=1, max_length=1)


class MemoryRevision(Response):
    """One revision of an atomic memory.

    ``GET …/{artifact_id}/revisions/{revision}`` and the answer to ``PUT …/{artifact_id}``.
    """

    scope_id: str = Field(repr=False)
    artifact: ArtifactReference
    kind: str = Field(repr=False)
    text: str = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, reply: Any) -> Any:
        match reply:
            case {"content": {"kind": kind, "text": text}, "scope_id": scope_id, **artifact}:
                return {"scope_id": scope_id, "artifact": artifact, "kind": kind, "text": text}
        raise ValueError


class MemoryEntry(Response):
    """An entry of a Memory before 1.3: ``POST /v1/memory/entries/get``."""

    citation: EntryCitation
    kind: str = Field(repr=False)
    text: str = Field(repr=False)
    state: Literal["active", "inactive"]


class EntryReply(Response):
    """``POST /v1/memory/entries/revise`` and ``…/retire``."""

    entry: MemoryEntry


class ManifestEntry(Response):
    """An entry's present version, without its text."""

    entry_id: str
    entry_version_id: str


class MemoryManifest(Response):
    """The Memory's present revision, and which version of each entry is in it.

    ``GET …/artifacts/memory/memory`` before 1.3.
    """

    memory_ref: ArtifactReference
    entries: list[ManifestEntry]

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, reply: Any) -> Any:
        match reply:
            case {"content": {"manifest": {"entries": entries}}, **memory_ref}:
                return {"memory_ref": memory_ref, "entries": entries}
        raise ValueError


class AtomicHit(Hit):
    """A memory that a search of atomic memory found (1.3 and later)."""

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, hit: Any) -> Any:
        match hit:
            case {
                "family": family,
                "artifact_id": artifact_id,
                "revision": revision,
                "content": {"kind": kind, "text": text},
            }:
                citation = {"family": family, "artifact_id": artifact_id, "revision": revision}
                return {"text": text, "citation": citation, "kind": kind}
        raise ValueError


class AtomicSearchReply(Response):
    """``POST /v1/scopes/{scope_id}/artifacts/atomic-memory/search``, there since 1.3."""

    results: list[AtomicHit] = Field(max_length=100)


class MemoryPage(Response):
    """``POST /v1/atomic-memory/list``: some of the memories, and where the next ones begin."""

    hits: list[Hit]
    next_cursor: str | None = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, reply: Any) -> Any:
        match reply:
            case {"items": [*items], "next_cursor": cursor}:
                return {"hits": [{"memory": item} for item in items], "next_cursor": cursor}
        raise ValueError
