"""What we read of the server's JSON: 1.2.0's shapes and those of 1.3 and later. Fields we do not use are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import PowerContextResponseError

MAX_QUERY_CHARACTERS: Final = 8192
"""The API's limit of ``query``, in Unicode characters (1.4.1 and 1.2.0)."""

ERROR_CODES: Final = frozenset(
    {
        "unauthorized",
        "forbidden",
        "scope_not_found",
        "invalid_request",
        "invalid_access_request",
        "request_too_large",
        "internal_error",
        "server_overloaded",
        "access_unavailable",
        "authentication_unavailable",
        "runtime_not_ready",
        "memory_write_rejected",
        "artifact_not_found",
        "memory_not_found",
        "not_found",
        "revision_conflict",
        "atomic_memory_changed",
        "memory_entry_inactive",
        "artifact_owner_pending",
        "legacy_memory_operation_unsupported",
        "source_conflict",
    },
)
"""The server's error codes we may repeat.

Any other word of a reply is the server's text, and stays out of logs and messages.
"""


_Identifier = Annotated[str, Field(pattern=r"^[\x21-\x7E]{1,128}$")]


class Response(BaseModel):
    """A reply's body."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)

    @classmethod
    def parse(cls, operation: str, body: bytes, request_id: str | None = None) -> Self:
        """Read ``body``; ``operation`` and ``request_id`` are for the error.

        Raises:
            PowerContextResponseError: It is not JSON, or not of this shape.
        """
        try:
            return cls.model_validate_json(body)
        except ValidationError:
            pass  # its text would quote the reply, so it must not hang on to ours
        raise PowerContextResponseError(
            "the reply is not what PowerContext's contract says",
            operation=operation,
            request_id=request_id,
        )


class PreparedContext(Response):
    """``POST /v1/context/prepare``. Valid only if the budget it claims is the one it keeps."""

    schema_name: Literal["powercontext.prepared-context.v1"] = Field(alias="schema")
    status: Literal["ready", "empty"]
    content: str | None = Field(repr=False)
    content_bytes: int

    @model_validator(mode="after")
    def _check_content(self) -> PreparedContext:
        size = 0 if self.content is None else len(self.content.encode())
        if size != self.content_bytes or (self.status == "ready") != (self.content is not None):
            raise ValueError
        return self


class SourceReference(Response):
    """Names a source within its Scope."""

    source_id: str = Field(repr=False)


class SourceAccepted(Response):
    """``POST /v1/sources/content``, with status 202: the source is stored, now or before."""

    status: Literal["accepted"]
    source: SourceReference
    position: int = Field(ge=1)


class Scope(Response):
    """``GET /v1/scopes/{scope_id}``."""

    scope_id: str = Field(repr=False)


class ArtifactReference(Response):
    """Names one revision of an artifact. Since 1.3 it is a memory's citation."""

    family: _Identifier
    artifact_id: _Identifier
    revision: int = Field(ge=1)


class EntryCitation(Response):
    """A memory's citation before 1.3."""

    memory_ref: ArtifactReference
    entry_id: _Identifier
    entry_version_id: _Identifier


Citation = ArtifactReference | EntryCitation


class Hit(Response):
    """A memory that ``POST /v1/memory/search`` found, in either generation. Before 1.3 its kind is not told."""

    text: str = Field(repr=False)
    citation: Citation
    kind: str | None = Field(default=None, repr=False)
    state: str = Field(default="active", repr=False)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, hit: Any) -> Any:
        match hit:
            case {"memory": {"artifact": citation, "text": text, "kind": kind, "state": state}}:
                return {"text": text, "citation": citation, "kind": kind, "state": state}
            case {"citation": citation, "text": text}:
                return {
                    "text": text,
                    "citation": citation,
                    "kind": hit.get("kind"),
                    "state": hit.get("state", "active"),
                }
        raise ValueError


class Remembered(Response):
    """``POST /v1/memory/remember``, in either generation.

    Attributes:
        changed: Whether a memory was added. Before 1.3 a text the server has is not added again; since 1.3 it is.
        memory: What was added.
        memory_revision: The Memory's revision, which servers before 1.3 tell.
    """

    changed: bool
    memory: Hit | None
    memory_revision: ArtifactReference | None = None

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, reply: Any) -> Any:
        match reply:
            case {"changed": changed, "records": [record, *_]}:
                return {"changed": changed, "memory": {"memory": record}}
            case {"changed": False, "records": []}:
                return {"changed": False, "memory": None}
            case {"memory": revision, "entry": {} as entry}:
                return {"changed": True, "memory": entry, "memory_revision": revision}
            case {"memory": revision, "entry": None}:
                return {"changed": False, "memory": None, "memory_revision": revision}
        raise ValueError

    def is_about(self, kind: str, text: str) -> bool:
        """Tell whether the memory is an active one of exactly ``kind`` and ``text``.

        One that is not named is about anything.
        """
        return self.memory is None or (self.memory.kind, self.memory.text, self.memory.state) == (kind, text, "active")


class SearchReply(Response):
    """``POST /v1/memory/search``."""

    hits: list[Hit]


class _Error(Response):
    code: str


class ErrorReply(Response):
    """The error envelope. Unknown routes, and bodies that cannot be parsed, answer without it."""

    error: _Error
