"""What may become of a save, and which texts can be saved at all."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from ..errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)
from ..models import ArtifactReference, Citation

_SURROGATE = re.compile("[\ud800-\udfff]")

KINDS: Final = ("fact", "preference", "decision", "constraint", "convention")
MAX_KIND_CHARACTERS: Final = 128
MAX_TEXT_BYTES: Final = 8192
"""The API's limit of ``text``: UTF-8 bytes, after NFC and strip (1.4.1 and 1.2.0)."""

Reason = Literal["empty", "too_long", "not_unicode", "unknown_kind", "token", "scope", "busy", "shutdown", "unreachable", "overloaded", "refused"]


@dataclass(frozen=True, slots=True)
class Saved:
    """The server confirmed the memory.

    Attributes:
        citation: The server's.
        by_read_back: Whether a look-up confirmed it, after the reply to the write was lost.
    """

    citation: Citation
    by_read_back: bool = False


@dataclass(frozen=True, slots=True)
class AlreadySaved:
    """The server had this memory; nothing was added.

    Attributes:
        citation: The server's, or ``None`` if no bounded look-up told it.
        memory_revision: The Memory's revision, which servers before 1.3 tell.
    """

    citation: Citation | None
    memory_revision: ArtifactReference | None = None


@dataclass(frozen=True, slots=True)
class NotSaved:
    """The server has not got it, for certain.

    Attributes:
        reason: Why.
        error: What the exchange said, unless the text was refused before any.
    """

    reason: Reason
    error: PowerContextError | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request may have reached the server, and nothing tells whether it stored the text, now or in a moment."""

    error: PowerContextError


Outcome = Saved | AlreadySaved | NotSaved | Unknown


def normalize(text: str) -> str:
    """Return ``text`` as the server stores it: NFC, without white space around it."""
    return unicodedata.normalize("NFC", text).strip()


def is_kind(kind: object) -> bool:
    """Tell whether the API takes ``kind``: 1 to 128 characters, not blank (1.4.1 and 1.2.0)."""
    return isinstance(kind, str) and 0 < len(kind) <= MAX_KIND_CHARACTERS and bool(kind.strip()) and not _SURROGATE.search(kind)


def refusal(kind: object, text: object, *, any_kind: bool = False) -> NotSaved | None:
    """Return why a memory cannot be saved, without asking the server, or ``None``."""
    if not (is_kind(kind) if any_kind else kind in KINDS):
        return NotSaved("unknown_kind")
    if not isinstance(text, str) or not normalize(text):
        return NotSaved("empty")
    try:
        size = len(normalize(text).encode())
    except UnicodeEncodeError:
        return NotSaved("not_unicode")
    return NotSaved("too_long") if size > MAX_TEXT_BYTES else None


def proves_not_saved(error: PowerContextError) -> bool:
    """Tell whether the server cannot have stored the text: it got no request, or refused it before doing anything."""
    if not error.may_have_been_sent:
        return True
    if not isinstance(error, PowerContextStatusError):
        return False
    return 300 <= error.status_code < 500 or error.code == "server_overloaded"


def reason_of(error: PowerContextError) -> Reason:
    """Return what the model is told of ``error``, after which nothing is saved."""
    if isinstance(error, PowerContextAuthenticationError):
        return "token"
    if isinstance(error, PowerContextScopeNotFoundError):
        return "scope"
    if isinstance(error, PowerContextCancelledError):
        return "shutdown"
    if isinstance(error, PowerContextConnectionError | PowerContextTimeoutError):
        return "unreachable"
    return "overloaded" if isinstance(error, PowerContextStatusError) and error.code == "server_overloaded" else "refused"
