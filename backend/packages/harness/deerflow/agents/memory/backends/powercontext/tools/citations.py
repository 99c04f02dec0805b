"""Reading what a model wrote as a citation.

A citation is the server's own object, as ``remember``, ``recall`` and the recalled text show it. Models write it a
little wrong: as a string of JSON, with keys around it, as a line of the recalled text, or only its id. What can mean
one memory alone is taken; a text that merely speaks of an id is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

MAX_CHARACTERS: Final = 65_536
"""A longer string is not looked at. A whole recalled item, escaped, has less."""

MAX_REVISION: Final = 2**31 - 1  # 1.4.1 answers 500 to a number that its database cannot hold

_MAX_DEPTH: Final = 6
_INNER_KEYS: Final = frozenset(
    {
        "citation",
        "citations",
        "artifact",
        "artifact_ref",
        "memory",
        "memories",
        "memory_ref",
        "entry",
        "record",
        "records",
        "item",
        "items",
        "target",
    },
)
_IDENTIFIER = re.compile(r"[\x21-\x7E]{1,128}")
_ID = re.compile(r"\b(?:art|mem_ent)_[A-Za-z0-9]{1,120}\b")
_VERSION = re.compile(r"\bmem_ver_[A-Za-z0-9]{1,120}\b")
_SCOPE = re.compile(r"\bscp_[A-Za-z0-9]{1,120}\b")
_REVISION = re.compile(r"\brevision\b\W{0,6}([0-9]{1,12})\b|(?:art|mem_ent)_[A-Za-z0-9]{1,120}[@#:/]([0-9]{1,12})\b")
_FAMILY = re.compile(r"\bfamily\b\W{1,6}([A-Za-z][A-Za-z-]{0,63})")
# All that a line of the recalled text, or a citation in another notation, has beside the ids.
_NOTATION = re.compile(
    r"family|atomic-memory|artifact(?:_id|_ref)?|citation|memory(?:_ref)?|entry(?:_id|_version_id)?|scope(?:_id)?|revision|version|truncated|id|yes|no|[0-9]+|[\W_]",
    re.IGNORECASE,
)

Misread = Literal["not_a_citation", "several_citations", "another_family", "another_scope"]


@dataclass(frozen=True, slots=True)
class CitedMemory:
    """A memory of a server since 1.3.

    Attributes:
        artifact_id: Its id, which stays.
        revision: The revision that is meant; ``None``: the present one.
    """

    artifact_id: str
    revision: int | None


@dataclass(frozen=True, slots=True)
class CitedEntry:
    """A memory of a server before 1.3.

    Attributes:
        entry_id: Its id, which stays.
        entry_version_id: The version of its text that is meant; ``None``: the present one.
        memory_revision: The revision of the whole Memory in which that version was seen.
    """

    entry_id: str
    entry_version_id: str | None
    memory_revision: int | None


Cited = CitedMemory | CitedEntry


@dataclass(frozen=True, slots=True)
class _Family:
    """Something that is cited, but is no single memory."""

    name: str


@dataclass(frozen=True, slots=True)
class _Scope:
    """A Scope that is named beside it."""

    scope_id: str


_Part = Cited | _Family | _Scope


def read_citation(value: object, scope_id: str) -> Cited | Misread:
    """Return the one memory that ``value`` cites, or why it cannot be told.

    Args:
        value: What the model wrote; anything at all.
        scope_id: The Scope it has to be in. Another Scope beside the citation is refused.
    """
    parts = set(_parts(value, _MAX_DEPTH))
    cited = _distinct({part for part in parts if isinstance(part, CitedMemory | CitedEntry)})
    if any(isinstance(part, _Scope) and part.scope_id != scope_id for part in parts):
        return "another_scope"
    if len(cited) > 1:
        return "several_citations"
    families = {part.name for part in parts if isinstance(part, _Family)}
    if cited and isinstance(cited[0], CitedEntry):
        families.discard("memory")
    if families:  # "memory", in front of an entry, is the collection that the entry is in
        return "another_family"
    return cited[0] if cited else "not_a_citation"


def _distinct(cited: set[Cited]) -> list[Cited]:
    """Return what is cited, without what only names the id of something that is cited exactly."""
    exact = {_id_of(one) for one in cited if _is_exact(one)}
    return [one for one in cited if _is_exact(one) or _id_of(one) not in exact]


def _id_of(cited: Cited) -> str:
    return cited.artifact_id if isinstance(cited, CitedMemory) else cited.entry_id


def _is_exact(cited: Cited) -> bool:
    return (cited.revision if isinstance(cited, CitedMemory) else cited.entry_version_id) is not None


def _parts(value: object, depth: int) -> Iterator[_Part]:
    if depth == 0:
        return
    if isinstance(value, str):
        yield from _parts_of_text(value, depth)
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _parts(element, depth - 1)
    elif isinstance(value, Mapping):
        yield from _parts_of_object(value)
        for key in _INNER_KEYS & value.keys():
            yield from _parts(value[key], depth - 1)


def _parts_of_object(value: Mapping[Any, Any]) -> Iterator[_Part]:
    if isinstance(value.get("scope_id"), str):
        yield _Scope(value["scope_id"])
    identifier = value.get("artifact_id", value.get("id"))
    if "entry_id" in value:
        memory = value.get("memory_ref")
        seen = memory.get("revision") if isinstance(memory, Mapping) else None
        yield from _entry(value["entry_id"], value.get("entry_version_id"), seen)
    elif value.get("family", "atomic-memory") != "atomic-memory":
        yield _Family(str(value["family"])[:64])
    elif isinstance(identifier, str) and identifier.startswith("mem_ent_"):
        yield from _entry(identifier, value.get("entry_version_id"), None)
    elif "artifact_id" in value or (isinstance(identifier, str) and _ID.fullmatch(identifier)):
        yield from _memory(identifier, value.get("revision"))


def _parts_of_text(text: str, depth: int) -> Iterator[_Part]:
    if len(text) > MAX_CHARACTERS:
        return
    text = text.strip().strip("`").strip().removeprefix("json").lstrip()
    if text[:1] in ("{", "[", '"'):
        try:
            yield from _parts(json.loads(text), depth - 1)
            return
        except (ValueError, RecursionError):
            pass
    text = "\n".join(line for line in text.splitlines() if not line.startswith(">"))  # a line of the memory itself
    identifiers = set(_ID.findall(text))
    rest = text
    for known in (_FAMILY, _ID, _VERSION, _SCOPE, _NOTATION):
        rest = known.sub("", rest)
    if rest or not identifiers:
        return
    yield from (_Scope(scope) for scope in _SCOPE.findall(text))
    yield from (_Family(family) for family in _FAMILY.findall(text) if family != "atomic-memory")
    revisions: set[int | None] = {int(number) for pair in _REVISION.findall(text) for number in pair if number}
    versions = _VERSION.findall(text)
    version = versions[0] if versions else None
    for identifier, revision in product(identifiers, revisions or {None}):
        if identifier.startswith("art_"):
            yield from _memory(identifier, revision)
        else:
            yield from _entry(identifier, version, revision)


def _memory(identifier: object, revision: object) -> Iterator[_Part]:
    number = _revision(revision)
    if _is_identifier(identifier) and number != 0:
        yield CitedMemory(str(identifier), number)


def _entry(identifier: object, version: object, seen: object) -> Iterator[_Part]:
    number = _revision(seen)
    if _is_identifier(identifier) and (version is None or _is_identifier(version)) and number != 0:
        yield CitedEntry(str(identifier), None if version is None else str(version), number)


def _is_identifier(value: object) -> bool:
    # A server, or a proxy before it, may read dots in a path as a way up.
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None and value not in (".", "..")


def _revision(value: object) -> int | None:
    """Return a revision, also from ``"3"`` or ``3.0``; ``None`` for none, and 0 for what cannot be one."""
    if value is None:
        return None
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"[0-9]{1,12}", value.strip()) else 0
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return 0
    return int(value) if 1 <= value <= MAX_REVISION else 0
