"""What is new in a conversation, under which id it goes, and in which parts. Pure.

A source's id is made of the installation, the user, the thread, the host's id of the message and a digest of all that
is sent. So the same message is always the same source, which the server takes once, and a changed one is another.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from .selection import Said, Turn

MAX_PART_TOKENS: Final = 4_000
"""The most of a part, in tokens as PowerContext estimates them.

Its extraction stops for ever at a source of over 24,000.
"""

# Where a text is cut, the best place first: after a paragraph, a line, a sentence, a word.
_SEAMS: Final = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"')\]]*\s+|[。！？；]"),
    re.compile(r"\s+|，|、"),
)

Seen = Set[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Origin:
    """Whose conversation it is. Only hashes of it leave."""

    installation: str = field(repr=False)
    user_id: str = field(repr=False)
    thread_id: str = field(repr=False)

    @property
    def thread_key(self) -> bytes:
        """Name the thread within the installation."""
        return _hash("thread", self.installation, self.user_id, self.thread_id)[:16]

    def destination(self, scope_id: str) -> bytes:
        """Name a Scope: what was heard for one is not sent to another."""
        return _hash("scope", self.installation, scope_id)[:16]


@dataclass(frozen=True)
class Evidence:
    """One source to be stored, exactly as it is sent, again and again until it is there."""

    source_id: str
    content: str = field(repr=False)
    metadata: dict[str, str | int] = field(repr=False)


@dataclass(frozen=True)
class News:
    """A message that was not looked at before.

    Attributes:
        key: Names it within its thread.
        mark: Tells this text of it from others.
        sources: What is to be sent; empty if it stays.
        left_out: Why it stays, or ``None``.
    """

    key: bytes
    mark: bytes
    sources: tuple[Evidence, ...]
    left_out: str | None


def message_key(said: Said) -> bytes:
    """Name a message within its thread. One without an id is named by its text."""
    return _hash("message", said.role, said.message_id or f"\0{said.text}")[:16]


def news(
    turns: Sequence[Turn],
    origin: Origin,
    seen: Seen,
    *,
    compaction: bool = False,
    saved_in_open_turn: bool = False,
) -> Iterator[News]:
    """Yield what is new in ``turns``, in order.

    New is what follows the last turn that was looked at before, and what has changed since. Of a thread that was never
    looked at, it is the last turn: what was said before capture was switched on stays.

    Args:
        turns: The conversation, as much of it as the host has.
        origin: Whose it is.
        seen: Key and mark of the thread's messages that were looked at.
        compaction: The host is about to drop these messages in the middle of a run. Of an unknown thread only a turn
            without its answer is the run's own.
        saved_in_open_turn: What the host dropped of the run's turn said that the model saved something in it.
    """
    known = {key for key, _ in seen}
    last = max(
        (index for index, turn in enumerate(turns) if any(message_key(said) in known for said in turn.said)),
        default=None,
    )
    if last is None and compaction and turns and turns[-1].answered:
        return
    first = len(turns) - 1 if last is None else last
    run = min(first if last is None else first + 1, len(turns) - 1)
    for index, turn in enumerate(turns):
        for said in turn.said:
            key, mark = message_key(said), _hash("text", said.text)[:16]
            if (key, mark) not in seen and (index >= first or key in known):
                reason = said.left_out or ("explicit" if saved_in_open_turn and index == run else None)
                yield News(key, mark, () if reason else tuple(sources(said, origin)), reason)


def sources(said: Said, origin: Origin) -> Iterator[Evidence]:
    """Yield ``said`` as one source, or as several whose numbers are in their metadata."""
    texts = parts(said.text)
    for number, text in enumerate(texts, 1):
        metadata: dict[str, str | int] = {"host": "deerflow", "role": said.role, "thread": origin.thread_key.hex()}
        if len(texts) > 1:
            metadata |= {"part": number, "parts": len(texts)}
        payload = json.dumps([text, metadata], ensure_ascii=False, sort_keys=True)
        identity = _hash(
            "source",
            origin.installation,
            origin.user_id,
            origin.thread_id,
            said.role,
            said.message_id,
            payload,
        )
        yield Evidence(f"deerflow-{identity.hex()}", text, metadata)


def estimated_tokens(text: str) -> float:
    """Return the tokens of ``text`` as PowerContext estimates them.

    Of its JSON, four ASCII characters are one, any other is one.
    """
    escaped = json.dumps(text, ensure_ascii=False)
    ascii_characters = len(escaped.encode("ascii", "ignore"))
    return ascii_characters / 4 + len(escaped) - ascii_characters


def parts(text: str, limit: int = MAX_PART_TOKENS) -> list[str]:
    """Return ``text`` in parts of at most ``limit`` estimated tokens.

    They are cut at paragraphs where that goes; only white space is lost.
    """
    cut: list[str] = []
    rest = text.strip()
    while estimated_tokens(rest) > limit:
        fits = _longest_start(rest, limit)
        place = _seam(rest, fits)
        cut.append(rest[:place].strip())
        rest = rest[place:].strip()
    return [part for part in [*cut, rest] if part]


def _longest_start(text: str, limit: int) -> int:
    """Return how many characters of ``text`` fit, at least one."""
    low, high = 1, min(len(text), limit * 4)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated_tokens(text[:middle]) <= limit else (low, middle - 1)
    return low


def _seam(text: str, fits: int) -> int:
    """Return where to cut, at most at ``fits``: at the last seam of the best kind that leaves no tiny part."""
    for seam in _SEAMS:
        places = [match.end() for match in seam.finditer(text, fits // 4, fits) if match.end() <= fits]
        if places:
            return places[-1]
    return fits


def _hash(*fields: str) -> bytes:
    """Return a hash of ``fields`` that no other division of the same characters has."""
    digest = hashlib.sha256()
    for part in fields:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
