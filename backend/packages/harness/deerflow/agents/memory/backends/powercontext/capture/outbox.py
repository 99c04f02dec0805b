"""What waits to be sent: durable before it is claimed, bounded, in order, and nothing twice.

What was heard is queued when the transaction of ``hear`` is committed, and not before. Text is in the file only until
it is sent or forgotten; what stays of it are hashes, by which it is not heard a second time.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .database import Database
from .evidence import Evidence, News, Origin, message_key, news
from .outbox_models import Entry, Heard, Limits, Status
from .selection import Turn

MAX_SEEN: Final = 500_000
"""How many messages are kept in mind, as hashes of about 60 bytes.

What drops out and comes again is the same source again.
"""


OPEN: Final = "open"
"""The mark of what compaction took out of a turn that is not over: the model may still save it explicitly."""


class Outbox:
    """The outbox in the host's folder. Safe for threads and processes.

    Every method raises ``PowerContextOutboxError`` if the file cannot be used; then nothing has changed.
    """

    def __init__(self, storage_path: Path, limits: Limits, *, busy_seconds: float = 5.0) -> None:
        self._database = Database(storage_path, busy_seconds=busy_seconds)
        self._limits = limits
        self._trimmed = False

    def exists(self) -> bool:
        """Tell whether there is an outbox."""
        return self._database.exists()

    def hear(self, conversations: Sequence[Heard]) -> Counter[str]:
        """Queue what is new in ``conversations``, all in one transaction, and return the counts of what became of it.

        A message that finds the outbox full is refused, and so is what follows it in its thread; where earlier ones of
        the thread were heard, its next turn brings them again.
        """
        counts: Counter[str] = Counter()
        with self._database.transaction() as connection:
            self._drop_old(connection, counts)
            for heard in conversations:
                self._hear(connection, heard, counts)
            _count(connection, counts)
        return +counts

    def _hear(self, connection: sqlite3.Connection, heard: Heard, counts: Counter[str]) -> None:
        origin = Origin(_installation(connection), heard.user_id, heard.thread_id)
        thread = origin.thread_key
        seen = set(connection.execute("SELECT message_key, mark FROM seen WHERE thread_key = ?", (thread,)))
        saved = connection.execute("SELECT 1 FROM open_saves WHERE thread_key = ?", (thread,)).fetchone() is not None
        [entries, size] = connection.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM entries").fetchone()
        open_turn = heard.turns[-1] if heard.compaction and heard.turns and not heard.turns[-1].answered else None
        open_keys = {message_key(said) for said in open_turn.said} if open_turn else set()
        if open_turn is None and not heard.compaction:
            self._close_turn(connection, thread, heard.turns, saved, counts)
        fresh = list(news(heard.turns, origin, seen, compaction=heard.compaction, saved_in_open_turn=saved))
        for position, message in enumerate(fresh):
            entries += len(message.sources)
            size += sum(_size(source) for source in message.sources)
            if message.sources and (entries > self._limits.max_entries or size > self._limits.max_bytes):
                counts["refused"] += sum(bool(refused.sources) for refused in fresh[position:])
                return
            self._queue(connection, heard, origin, message, parked=OPEN if message.key in open_keys else None)
            counts["queued" if message.left_out is None else f"left out: {message.left_out}"] += 1
        if open_turn is not None and open_turn.explicit:
            connection.execute("INSERT OR IGNORE INTO open_saves VALUES (?)", (thread,))

    def _close_turn(
        self,
        connection: sqlite3.Connection,
        thread: bytes,
        turns: Sequence[Turn],
        saved: bool,
        counts: Counter[str],
    ) -> None:
        """Let what compaction took of the run's turn go, or forget it, now that the whole turn is known."""
        rows = connection.execute(
            "SELECT id, message_key FROM entries WHERE thread_key = ? AND parked = ?",
            (thread, OPEN),
        ).fetchall()
        keys = {key for _, key in rows}
        own = [turn for turn in turns if any(message_key(said) in keys for said in turn.said)]
        if not own:
            own = [turn for turn in turns[:1] if all(said.role == "assistant" for said in turn.said)]
        if rows and (saved or any(turn.explicit or turn.has_credential for turn in own)):
            connection.executemany("DELETE FROM contents WHERE id = ?", [(row[0],) for row in rows])
            connection.executemany("DELETE FROM entries WHERE id = ?", [(row[0],) for row in rows])
            counts["left out: explicit"] += len(rows)
        connection.execute("UPDATE entries SET parked = NULL WHERE thread_key = ? AND parked = ?", (thread, OPEN))
        connection.execute("DELETE FROM open_saves WHERE thread_key = ?", (thread,))

    def _queue(
        self,
        connection: sqlite3.Connection,
        heard: Heard,
        origin: Origin,
        message: News,
        parked: str | None,
    ) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?)",
            (origin.thread_key, message.key, message.mark, time.time() // 86400),
        )
        for source in message.sources:
            row = (
                time.time(),
                heard.user_id,
                origin.destination(heard.scope_id),
                origin.thread_key,
                message.key,
                source.source_id,
                _size(source),
                parked,
            )
            added = connection.execute(
                "INSERT OR IGNORE INTO entries (queued_at, user_id, destination, thread_key, message_key, source_id, bytes, parked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            if added.rowcount:
                connection.execute(
                    "INSERT INTO contents VALUES (?, ?, ?)",
                    (added.lastrowid, json.dumps(source.metadata), source.content),
                )

    def _drop_old(self, connection: sqlite3.Connection, counts: Counter[str]) -> None:
        """Drop what has waited too long, and the oldest hashes where there are too many."""
        oldest = time.time() - self._limits.max_age_seconds
        connection.execute("DELETE FROM contents WHERE id IN (SELECT id FROM entries WHERE queued_at < ?)", (oldest,))
        counts["expired"] += connection.execute("DELETE FROM entries WHERE queued_at < ?", (oldest,)).rowcount
        if not self._trimmed:
            connection.execute(
                "DELETE FROM seen WHERE day < (SELECT day FROM seen ORDER BY day DESC LIMIT 1 OFFSET ?)",
                (MAX_SEEN,),
            )
            self._trimmed = True

    def expire(self) -> int:
        """Drop what has waited too long, and return how many entries that were."""
        counts: Counter[str] = Counter()
        with self._database.transaction() as connection:
            self._drop_old(connection, counts)
            _count(connection, counts)
        return counts["expired"]

    def waiting(self) -> list[Entry]:
        """Return what is to be sent, the oldest first."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT id, user_id, destination, thread_key FROM entries WHERE parked IS NULL ORDER BY id",
            )
            return [Entry(*row) for row in rows]

    def destination_of(self, scope_id: str) -> bytes:
        """Return the ``destination`` of entries that were heard for this Scope."""
        with self._database.transaction() as connection:
            return Origin(_installation(connection), "", "").destination(scope_id)

    def read(self, entry: Entry) -> Evidence | None:
        """Return the source exactly as it was queued, or ``None`` if it is not there any more."""
        with self._database.transaction() as connection:
            query = "SELECT source_id, content, metadata FROM entries JOIN contents USING (id) WHERE id = ? AND parked IS NULL"
            found = connection.execute(query, (entry.id,)).fetchone()
        return None if found is None else Evidence(found[0], found[1], json.loads(found[2]))

    def sent(self, entry: Entry) -> None:
        """Forget an entry that PowerContext has."""
        with self._removing("sent") as connection:
            connection.execute("DELETE FROM contents WHERE id = ?", (entry.id,))
            connection.execute("DELETE FROM entries WHERE id = ?", (entry.id,))

    def park(self, entry: Entry, code: str) -> None:
        """Keep an entry that PowerContext refused with ``code``, and send it no more."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE entries SET parked = ? WHERE id = ?", (code, entry.id))

    def retry(self) -> int:
        """Let parked entries be sent again, and return how many there are."""
        with self._database.transaction() as connection:
            return connection.execute("UPDATE entries SET parked = NULL WHERE parked != ?", (OPEN,)).rowcount

    def purge(self) -> int:
        """Forget everything that has not been sent, and return how many entries that were. It is not heard again."""
        with self._removing("purged") as connection:
            connection.execute("DELETE FROM contents")
            return connection.execute("DELETE FROM entries").rowcount

    @contextmanager
    def _removing(self, name: str) -> Iterator[sqlite3.Connection]:
        """Count as ``name`` what the block removes from the outbox."""
        with self._database.transaction() as connection:
            [before] = connection.execute("SELECT count(*) FROM entries").fetchone()
            yield connection
            [after] = connection.execute("SELECT count(*) FROM entries").fetchone()
            _count(connection, Counter({name: before - after}))

    def status(self) -> Status:
        """Return what can be said of the outbox."""
        with self._database.transaction() as connection:
            by_code = dict(
                connection.execute("SELECT coalesce(parked, ''), count(*) FROM entries GROUP BY 1").fetchall(),
            )
            [size, oldest] = connection.execute(
                "SELECT coalesce(sum(bytes), 0), min(queued_at) FROM entries",
            ).fetchone()
            counts = dict(connection.execute("SELECT name, value FROM counters ORDER BY name").fetchall())
        age = 0.0 if oldest is None else max(0.0, time.time() - oldest)
        return Status(by_code.pop("", 0) + by_code.pop(OPEN, 0), by_code, size, age, counts)


def _installation(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT value FROM about WHERE name = 'installation'").fetchone()[0])


def _size(source: Evidence) -> int:
    return len(source.content.encode()) + len(json.dumps(source.metadata))


def _count(connection: sqlite3.Connection, counts: Counter[str]) -> None:
    for name, value in counts.items():
        if value:
            connection.execute(
                "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (name, value),
            )
