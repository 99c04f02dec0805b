"""What we read of the lists of a Scope's memories, in either generation."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from .models import Citation, Response


class ListedMemory(Response):
    """One active memory."""

    citation: Citation
    kind: str = Field(repr=False)
    text: str = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, entry: Any) -> Any:
        match entry:
            case {"artifact": citation, "kind": kind, "text": text} | {
                "citation": citation,
                "kind": kind,
                "text": text,
            }:
                return {"citation": citation, "kind": kind, "text": text}
        raise ValueError


class MemoryList(Response):
    """``POST /v1/memory/entries/list``: in pages since 1.3, whole before."""

    entries: list[ListedMemory]
    next_cursor: str | None = Field(default=None, repr=False)


class ListedArtifact(Response):
    """When a revision was made."""

    artifact_id: str
    revision: int
    created_at: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(Z|[+-][0-9]{2}:[0-9]{2})$")


class ArtifactList(Response):
    """``GET /v1/scopes/{scope_id}/artifacts/atomic-memory`` (1.3 and later), in the order of the memory list."""

    items: list[ListedArtifact]
    next_cursor: str | None = Field(default=None, repr=False)
