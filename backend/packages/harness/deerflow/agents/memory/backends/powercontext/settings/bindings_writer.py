"""Changes the bindings file: one at a time, as a whole or not at all, readable for its owner alone."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from ..errors import PowerContextConfigurationError
from .bindings_file import parse, read_file
from .people import Entry

LOCK_SECONDS: Final = 60.0
"""How long one command waits for another, which may be waiting for the server."""


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Keep other commands from the file. The lock is the folder's, so it leaves nothing behind.

    Raises:
        PowerContextConfigurationError: There is no such folder, or another command does not end.
    """
    import fcntl  # POSIX has it; the Gateway does without

    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        descriptor = -1
    if descriptor < 0:
        raise PowerContextConfigurationError("the folder of the bindings file cannot be opened; make it first")
    try:
        end = time.monotonic() + LOCK_SECONDS
        while not _try_to_lock(fcntl, descriptor):
            if time.monotonic() > end:
                raise PowerContextConfigurationError(
                    "another command is changing a bindings file in this folder; try again when it has ended",
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _try_to_lock(fcntl: Any, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_entries(path: str) -> list[Entry]:
    """Return what the file says.

    Raises:
        PowerContextConfigurationError: It cannot be read, or something in it is wrong.
    """
    return _checked(read_file(path).content)


def write_entries(path: str, entries: Sequence[Entry]) -> None:
    """Put ``entries`` in the file's place: whoever reads it meanwhile gets the old ones or the new ones, all of them.

    Raises:
        PowerContextConfigurationError: They break a rule, or the file cannot be written; the old one is as it was.
    """
    bindings = {"bindings": [_fields(entry) for entry in entries]}
    content = (json.dumps(bindings, indent=2, ensure_ascii=False) + "\n").encode()
    _checked(content)
    folder = os.path.dirname(path)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".bindings-", dir=folder)  # mode 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
            _keep_owner(path, descriptor)
        os.replace(temporary, path)
        temporary = None
        _sync_folder(folder)
        return
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
    raise PowerContextConfigurationError(
        "the bindings file cannot be written; run this as the user who owns it and its folder",
    )


def _checked(content: bytes) -> list[Entry]:
    entries, faults = parse(content, token_needed=False)
    if faults:
        raise PowerContextConfigurationError("\n- ".join(["the bindings file has to be corrected first:", *faults]))
    return entries


def _fields(entry: Entry) -> dict[str, str | bool]:
    fields: dict[str, str | bool] = {"owner_user_id": entry.owner_user_id, "scope_id": entry.scope_id}
    return fields | ({} if entry.token is None else {"token": entry.token}) | ({"shared": True} if entry.shared else {})


def _keep_owner(path: str, descriptor: int) -> None:
    """Give the new file the old one's owner, or the Gateway could not read what root wrote."""
    with suppress(FileNotFoundError):
        old, new = os.stat(path), os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
