"""What may become of a save, what proves that it was not made, and which texts can be saved at all.

When a save is unknown is decided in ``saving``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..api.models import ArtifactReference, Citation
from ..errors import (
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)

_SURROGATE = re.compile("[\ud800-\udfff]")

KINDS: Final = ("fact", "preference", "decision", "constraint", "convention")
MAX_KIND_CHARACTERS: Final = 128
MAX_TEXT_BYTES: Final = 8192
"""The API's limit of ``text``: UTF-8 bytes, after NFC and strip (1.4.1 and 1.2.0)."""

Reason = Literal[
    "empty",
    "not_a_string",
    "too_long",
    "not_unicode",
    "unknown_kind",
    "token",
    "scope",
    "busy",
    "shutdown",
    "unreachable",
    "failed",
    "overloaded",
    "refused",
]

REFUSALS: Final[Mapping[str, tuple[int, Reason]]] = {
    "unauthorized": (401, "token"),  # asked before anything else
    "forbidden": (403, "token"),  # before the operation begins
    "scope_not_found": (404, "scope"),  # there is nothing to store in
    "request_too_large": (413, "refused"),  # before the request is read to its end
    "invalid_request": (422, "refused"),  # the request is checked before the operation begins
    "invalid_access_request": (422, "refused"),  # the same, where access is enforced
    "memory_write_rejected": (422, "refused"),  # a gate before the store, read in 1.4.1
    "server_overloaded": (503, "overloaded"),  # turned away at the door: over 64 requests at once
    "authentication_unavailable": (503, "overloaded"),  # before anything else, read in 1.4.1
    "runtime_not_ready": (503, "overloaded"),  # the same
}
"""The codes and statuses that prove that PowerContext did nothing, with the reason we give.

Not among them: ``internal_error`` (500, a locked database, where the server promises nothing), ``access_unavailable``
(503, access is also written after an operation), and every reply that is not PowerContext's own envelope, for whoever
wrote it may have passed the request on.
"""


# Blanks, controls and signs that only steer others; and letters and marks that show nothing.
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


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


def shows_anything(text: str) -> bool:
    """Tell whether ``text`` has a sign that can be seen. The server takes some others, such as U+200B, for text."""
    return any(_BLANK.match(sign) is None and unicodedata.category(sign) not in _UNSEEN for sign in text)


def is_kind(kind: object) -> bool:
    """Tell whether the API takes ``kind``: 1 to 128 characters, not blank (1.4.1 and 1.2.0)."""
    if not isinstance(kind, str) or len(kind) > MAX_KIND_CHARACTERS:
        return False
    return bool(kind.strip()) and not _SURROGATE.search(kind)


def refusal(kind: object, text: object, *, any_kind: bool = False) -> NotSaved | None:
    """Return why a memory cannot be saved, without asking the server, or ``None``."""
    if not (is_kind(kind) if any_kind else kind in KINDS):
        return NotSaved("unknown_kind")
    if not isinstance(text, str):
        return NotSaved("empty" if text is None else "not_a_string")
    if not shows_anything(text):
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
    return isinstance(error, PowerContextStatusError) and _refusal_of(error) is not None


def _refusal_of(error: PowerContextStatusError) -> Reason | None:
    status, reason = REFUSALS.get(error.code or "", (0, None))
    return reason if status == error.status_code else None


def reason_of(error: PowerContextError) -> Reason:
    """Return what the model is told of ``error``, after which nothing is changed."""
    if isinstance(error, PowerContextCancelledError):
        return "shutdown"
    if isinstance(error, PowerContextConnectionError | PowerContextTimeoutError):
        return "unreachable"
    return (_refusal_of(error) if isinstance(error, PowerContextStatusError) else None) or "failed"
