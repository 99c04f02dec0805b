"""A memory as DeerFlow's fact, and a Scope as DeerFlow's memory document. Pure.

A fact's id carries the whole citation, because PowerContext changes a memory only under the revision that was seen. It
has only signs that stay as they are in JSON and in a URL's path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from ..api.models import ArtifactReference, Citation

SOURCE: Final = "powercontext"

_SEPARATOR = "@"


def fact_id(citation: Citation) -> str:
    """Return the id of the fact that ``citation`` names."""
    if isinstance(citation, ArtifactReference):
        parts = [citation.family, citation.artifact_id, citation.revision]
    else:
        memory = citation.memory_ref
        parts = [memory.family, memory.artifact_id, memory.revision, citation.entry_id, citation.entry_version_id]
    return _SEPARATOR.join(quote(str(part), safe="") for part in parts)


def citation_of(identifier: object) -> dict[str, Any] | None:
    """Return the citation that an id carries, or ``None`` if it is none of ours."""
    parts = [unquote(part) for part in identifier.split(_SEPARATOR)] if isinstance(identifier, str) else []
    if len(parts) not in (3, 5) or not parts[2].isascii() or not parts[2].isdigit() or len(parts[2]) > 10:
        return None
    reference = {"family": parts[0], "artifact_id": parts[1], "revision": int(parts[2])}
    if len(parts) == 3:
        return reference
    return {"memory_ref": reference, "entry_id": parts[3], "entry_version_id": parts[4]}


def fact(citation: Citation, text: str, kind: str | None, created_at: str | None = None) -> dict[str, Any]:
    """Return a memory in the shape of DeerFlow's facts.

    What PowerContext does not keep, a confidence, is not made up; nor is a time that the server did not tell.
    """
    return {
        "id": fact_id(citation),
        "content": text,
        "category": kind or "",
        "confidence": None,
        "createdAt": created_at or "",
        "source": SOURCE,
    }


def document(
    facts: Sequence[Mapping[str, Any]],
    *,
    total: int | None = None,
    now: datetime | None = None,
) -> dict[str, Any]:
    """Return DeerFlow's memory document.

    Args:
        facts: What is shown. Their missing confidence is left out: DeerFlow's page wants a number or nothing.
        total: How many memories there are; told where that is more.
        now: What ``lastUpdated`` says if no fact has a time.
    """
    shown = [{key: value for key, value in item.items() if value is not None} for item in facts]
    newest = max((item["createdAt"] for item in shown if item["createdAt"]), default=None)
    note = f"PowerContext holds {total} memories; {len(shown)} of them are listed here." if total is not None and total > len(shown) else ""
    return {
        "version": "1.0",
        "lastUpdated": newest or (now or datetime.now(UTC)).isoformat().replace("+00:00", "Z"),
        "user": {"workContext": _section(), "personalContext": _section(), "topOfMind": _section(note)},
        "history": {"recentMonths": _section(), "earlierContext": _section(), "longTermBackground": _section()},
        "facts": shown,
    }


def _section(summary: str = "") -> dict[str, str]:
    return {"summary": summary, "updatedAt": ""}
