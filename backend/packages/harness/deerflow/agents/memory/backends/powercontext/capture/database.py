"""The outbox's file: who may read it, whose it is, which version, and what a failure of it means.

One transaction is one connection. So nothing of SQLite outlives a fork, a deleted file is noticed, and the rollback
journal, which unlike a write-ahead log leaves no text behind and works for several processes on any file system with
locks, costs a millisecond.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..errors import PowerContextOutboxError

FILE_NAME: Final = "powercontext/outbox.sqlite3"
"""Where the outbox is in the folder that the host passes as ``storage_path``."""

VERSION: Final = 1
_APPLICATION_ID: Final = 0x50434F42

_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queued_at REAL NOT NULL, user_id TEXT NOT NULL, destination BLOB NOT NULL, thread_key BLOB NOT NULL,
    message_key BLOB NOT NULL, source_id TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL, parked TEXT
);
CREATE TABLE contents (id INTEGER PRIMARY KEY, metadata TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE seen (thread_key BLOB, message_key BLOB, mark BLOB, day INTEGER NOT NULL, PRIMARY KEY (thread_key, message_key, mark)) WITHOUT ROWID;
CREATE TABLE open_saves (thread_key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO about VALUES ('installation', lower(hex(randomblob(16))));
"""

# SQLite's primary result codes, with what an operator can do, and whether only he can.
_MEANINGS: Final = {
    sqlite3.SQLITE_BUSY: ("is locked by another process; end what holds it", False),
    sqlite3.SQLITE_LOCKED: ("is locked by another process; end what holds it", False),
    sqlite3.SQLITE_READONLY: ("cannot be written; make the folder writable for the Gateway", False),
    sqlite3.SQLITE_PERM: ("cannot be written; make the folder writable for the Gateway", False),
    sqlite3.SQLITE_FULL: ("cannot grow; the disk is full", False),
    sqlite3.SQLITE_IOERR: ("cannot be read or written; look into the disk", False),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened; make the folder writable for the Gateway", False),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged; move it away (what waits in it is lost to PowerContext) and restart the Gateway",
        True,
    ),
    sqlite3.SQLITE_NOTADB: ("is no outbox; move it away and restart the Gateway", True),
}


class _Gate:
    """Lets one thread of the process at the file at a time, and forks only between transactions.

    SQLite's own state must not be copied in the middle of a transaction, and closing any file handle of the process
    drops the process's locks on that file.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held_for_fork = False
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork,
                after_in_child=self._in_child,
            )

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def _before_fork(self) -> None:
        self._held_for_fork = self._lock.acquire(timeout=1.0)  # a disk that hangs must not keep a fork

    def _after_fork(self) -> None:
        if self._held_for_fork:
            self._held_for_fork = False
            self._lock.release()

    def _in_child(self) -> None:
        self._lock, self._held_for_fork = threading.Lock(), False


_gate = _Gate()


class Database:
    """The outbox's file in the host's folder. Safe for threads and processes; opened anew for every transaction.

    Every use raises ``PowerContextOutboxError`` for whatever is wrong with the file or its folder.
    """

    def __init__(self, storage_path: Path, *, busy_seconds: float = 5.0) -> None:
        self._path = storage_path / FILE_NAME
        self._busy_seconds = busy_seconds
        self._checked = False

    def exists(self) -> bool:
        """Tell whether there is an outbox."""
        return os.path.lexists(self._path)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file, which is made where there is none, and commit what is done in the block, or nothing of it."""
        problem: tuple[str, bool] | None = None
        with _gate:
            try:
                self._secure()
                with self._open() as connection:
                    yield connection
            except sqlite3.Error as error:
                problem = _MEANINGS.get(
                    getattr(error, "sqlite_errorcode", 0) & 0xFF,
                    (f"cannot be used ({type(error).__name__})", False),
                )
            except OSError as error:
                problem = (
                    f"cannot be used ({type(error).__name__}); make the folder writable for the Gateway, and look whether its disk is full",
                    False,
                )
        if problem is not None:
            raise PowerContextOutboxError(f"{FILE_NAME} in DeerFlow's storage folder {problem[0]}", lasting=problem[1])

    def _secure(self) -> None:
        """Make the file if there is none, and see that nobody else can read it.

        Raises:
            OSError: The folder or the file cannot be made.
            PowerContextOutboxError: It is not a file of our own.
        """
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        found = self._path.lstat()
        if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
            raise PowerContextOutboxError(
                f"{FILE_NAME} in DeerFlow's storage folder is not a file of the Gateway's own; move it away and restart the Gateway",
                lasting=True,
            )
        if os.name == "posix" and found.st_mode & 0o077:
            self._path.chmod(0o600)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
        )
        try:
            for setting in (
                "trusted_schema = OFF",
                "secure_delete = ON",
                "synchronous = FULL",
                "journal_mode = TRUNCATE",
            ):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check(connection)
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            self._checked = True
        finally:
            connection.close()

    def _check(self, connection: sqlite3.Connection) -> None:
        """See that the file is ours, of this version and sound; fill an empty one.

        Raises:
            PowerContextOutboxError: It is not.
        """
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application, version, tables) == (0, 0, 0):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        elif application != _APPLICATION_ID:
            raise PowerContextOutboxError(
                f"{FILE_NAME} in DeerFlow's storage folder is no outbox; move it away and restart the Gateway",
                lasting=True,
            )
        elif version != VERSION:
            raise PowerContextOutboxError(
                f"{FILE_NAME} in DeerFlow's storage folder is of version {version}, and this backend reads {VERSION}; use the backend that made it, or move it away",
                lasting=True,
            )
        elif not self._checked and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise PowerContextOutboxError(
                f"{FILE_NAME} in DeerFlow's storage folder {_MEANINGS[sqlite3.SQLITE_CORRUPT][0]}",
                lasting=True,
            )
