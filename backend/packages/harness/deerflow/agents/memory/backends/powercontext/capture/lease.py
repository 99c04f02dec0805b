"""Which process delivers: one at a time, so that the order within a thread holds.

The operating system frees what a dead one held.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Final

from ..transport.forking import in_forked_children

FILE_NAME: Final = "powercontext/delivery.lock"


class _Held:
    """The files that this process holds.

    The system's locks belong to the process and do not keep its own threads apart.
    """

    def __init__(self) -> None:
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self.lock = threading.Lock()
        self.paths: set[Path] = set()


_held = _Held()


class Lease:
    """The right to deliver from the outbox in ``storage_path``."""

    def __init__(self, storage_path: Path) -> None:
        self._path = (storage_path / FILE_NAME).absolute()
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._file: int | None = None  # a child has none: the system does not pass locks on

    def take(self) -> bool:
        """Return whether this process may deliver now.

        Raises:
            OSError: The file beside the outbox cannot be made.
        """
        if self._file is not None:
            return True
        with _held.lock:
            if self._path in _held.paths:
                return False
            file = os.open(
                self._path,
                os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0),
                0o600,
            )
            if not _lock(file):
                os.close(file)
                return False
            _held.paths.add(self._path)
            self._file = file
        return True

    def give_back(self) -> None:
        """Let another process deliver. Idempotent."""
        with _held.lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
                _held.paths.discard(self._path)


def _lock(file: int) -> bool:
    """Lock ``file`` for this process; return whether nobody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
