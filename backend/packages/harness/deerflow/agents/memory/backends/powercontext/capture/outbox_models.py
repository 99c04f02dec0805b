"""What goes into the outbox, what may wait in it, and what can be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .selection import Turn


@dataclass(frozen=True)
class Limits:
    """What may wait: entries, bytes of UTF-8, and for how long in seconds."""

    max_entries: int
    max_bytes: int
    max_age_seconds: float


@dataclass(frozen=True)
class Heard:
    """A conversation as the host handed it over.

    Attributes:
        compaction: Whether the host is about to drop these messages in the middle of a run.
    """

    user_id: str = field(repr=False)
    scope_id: str = field(repr=False)
    thread_id: str = field(repr=False)
    turns: Sequence[Turn] = field(repr=False)
    compaction: bool = False


@dataclass(frozen=True)
class Entry:
    """One source that waits, without its text."""

    id: int
    user_id: str = field(repr=False)
    destination: bytes = field(repr=False)
    thread_key: bytes = field(repr=False)


@dataclass(frozen=True)
class Status:
    """What can be said of the outbox without saying what is in it.

    Attributes:
        waiting: Entries that are to be sent, now or when the turn they belong to is over.
        parked: Entries that PowerContext refused, by its error code.
        oldest_seconds: How long the oldest of all has been here; 0 if there is none.
        counts: Since the file was made: ``queued``, ``sent``, ``refused`` (the outbox was full), ``expired``,
            ``purged``, and ``left out: …``.
    """

    waiting: int
    parked: dict[str, int]
    bytes: int
    oldest_seconds: float
    counts: dict[str, int]
