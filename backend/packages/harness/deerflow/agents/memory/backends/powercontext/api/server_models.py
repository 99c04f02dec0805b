"""What the server says of itself and of a Scope as a whole. The doctor asks for it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from .models import Response


class Readiness(Response):
    """``GET /health/ready``, with status 200 or 503."""

    status: Literal["ready", "degraded", "not_ready"]


class ServerInfo(Response):
    """``GET /v1/server-info``, there since 1.3."""

    product: Literal["powercontext"]
    package_version: str = Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}([A-Za-z0-9.+-]{0,20})$")


class _Background(Response):
    automatic_processing_enabled: bool = False


class _Extraction(Response):
    background: _Background = _Background()


class Capabilities(Response):
    """``GET /v1/capabilities``.

    Attributes:
        search_modes: ``vector`` or ``hybrid`` among them means that the server has embeddings.
        memory_extraction: Whether the server has a model that makes memories of sources; ``None`` if it does not say.
        extraction: Whether it does so by itself; ``None`` before 1.3.
    """

    search_modes: list[Literal["auto", "fts", "vector", "hybrid"]]
    memory_extraction: bool | None = None
    extraction: _Extraction | None = None

    @field_validator("search_modes", mode="before")
    @classmethod
    def _leave_out_unknown_modes(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [mode for mode in value if mode in ("auto", "fts", "vector", "hybrid")]


class Stats(Response):
    """``POST /v1/stats`` of one Scope.

    It tells how many of its sources have been looked through for memories, how many not yet, and its active memories.
    """

    sources_processed: int = Field(ge=0)
    sources_pending: int = Field(ge=0)
    active_memories: int = Field(ge=0)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, reply: Any) -> Any:
        match reply:
            case {
                "inventory": {
                    "sources": {"memory_processed": processed, "memory_pending": pending},
                    "memory": {"entries": {"active": active}},
                }
            }:
                return {"sources_processed": processed, "sources_pending": pending, "active_memories": active}
        raise ValueError
