"""The bindings file: several people, each with a Scope of their own. Valid as a whole, or nobody is served.

``{"bindings": [{"owner_user_id": "…", "scope_id": "…", "token": "…", "shared": true}, …]}``; ``token`` and ``shared``
may be left out. What is wrong is named by its position, never by a value: the file holds ids and tokens.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ..errors import PowerContextConfigurationError
from .identifiers import OWNER_ID_RULE, SCOPE_ID_RULE, TOKEN_RULE, is_owner_id, is_scope_id, is_token, slip_in
from .people import Entry

MAX_FILE_BYTES: Final = 8_000_000
MAX_BINDINGS: Final = 10_000
MAX_FAULTS: Final = 20
"""So many faults are told one by one."""

FIELDS: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "owner_user_id": (is_owner_id, OWNER_ID_RULE),
    "scope_id": (is_scope_id, SCOPE_ID_RULE),
    "token": (is_token, TOKEN_RULE),
}
"""The rules of the texts in an entry: those of the settings of the same name."""

KEYS: Final = (*FIELDS, "shared")

ADD_A_PERSON: Final = "add a person with `python -m deerflow.agents.memory.backends.powercontext.bind add`"
_SHAPE = 'must be one JSON object with the key bindings once and no other: {"bindings": [{"owner_user_id": …, "scope_id": …}, …]}'
_REASONS = {
    errno.ENOENT: f"there is no such file; correct the path, or {ADD_A_PERSON}",
    errno.EACCES: "this process may not read it",
    errno.ENOTDIR: "there is no such file",
    errno.ENXIO: "it is not a regular file",
    errno.ELOOP: "its links lead in a circle",
}


@dataclass(frozen=True, slots=True)
class FileContent:
    """What was read.

    Attributes:
        content: The bytes.
        open_to_others: Whether others than the file's owner may read or change it.
    """

    content: bytes = field(repr=False)
    open_to_others: bool


class _Object(list[tuple[str, object]]):
    """A JSON object as its pairs, so that a key that is there twice is seen."""


def read_file(path: str) -> FileContent:
    """Read the file, without waiting for anybody: a pipe is refused, not listened to.

    Raises:
        PowerContextConfigurationError: It is no regular file, too large or cannot be read. The message has neither its
            name nor its content.
    """
    reason = "reading it fails"
    try:
        flags = os.O_RDONLY
        for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
            flags |= getattr(os, name, 0)
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                reason = "it is not a regular file"
            else:
                content = file.read(MAX_FILE_BYTES + 1)
                if len(content) <= MAX_FILE_BYTES:
                    return FileContent(content, os.name == "posix" and status.st_mode & 0o077 != 0)
                reason = f"it is larger than {MAX_FILE_BYTES} bytes"
    except IsADirectoryError:
        reason = "it is not a regular file"
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, reason)
    except ValueError:
        pass  # a NUL in the path
    raise PowerContextConfigurationError(reason)


def parse(content: bytes, *, token_needed: bool) -> tuple[list[Entry], list[str]]:
    """Return the entries of the file, and what is wrong with it; the entries are good only if nothing is.

    Args:
        content: The file's bytes.
        token_needed: Whether an entry has to have a token, because there is no other.
    """
    faults = _Faults()
    listed = _listed(content, faults)
    if len(listed) > MAX_BINDINGS:
        faults.add(f"the file has {len(listed)} bindings, and at most {MAX_BINDINGS} are allowed")
        return [], faults.told()
    entries = []
    for position, value in enumerate(listed, 1):
        entry = _entry(position, value, token_needed, faults)
        if entry is not None:
            entries.append((position, entry))
    _compare(entries, faults)
    return [entry for _, entry in entries], faults.told()


class _Faults:
    """What is wrong, up to a number of sentences a person reads."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._count = 0

    def add(self, sentence: str) -> None:
        self._count += 1
        if self._count <= MAX_FAULTS:
            self._sentences.append(sentence)

    def told(self) -> list[str]:
        more = self._count - len(self._sentences)
        return [*self._sentences, f"and {more} faults more"] if more else self._sentences


def _listed(content: bytes, faults: _Faults) -> list[object]:
    """Return the list of bindings, whatever its items are."""
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        faults.add("the file begins with a byte order mark; save it as UTF-8 without one")
        return []
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_Object, parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        faults.add(f"the file is not UTF-8 (byte {error.start + 1}); save it as UTF-8")
    except json.JSONDecodeError as error:
        faults.add(
            f"the file is not JSON (line {error.lineno}, column {error.colno}); correct it there" if content.strip() else f"the file is empty; {ADD_A_PERSON}",
        )
    except RecursionError:
        faults.add("the file is not what it should be: brackets within brackets within brackets")
    except ValueError:  # a number with thousands of digits
        faults.add("the file is not what it should be: it has a number, and none belongs into it")
    else:
        if isinstance(document, _Object) and len(document) == 1 and document[0][0] == "bindings":
            listed = document[0][1]
            if isinstance(listed, list) and not isinstance(listed, _Object):
                return listed
        faults.add(f"the file {_SHAPE}")
    return []


def _entry(position: int, value: object, token_needed: bool, faults: _Faults) -> Entry | None:
    """Return the entry if it is good by itself."""
    if not isinstance(value, _Object):
        faults.add(f"binding {position}: must be an object with owner_user_id and scope_id")
        return None
    found = dict(value)
    foreign = [number for number, (key, _) in enumerate(value, 1) if key not in KEYS]
    problems = [f"key {number} is none of {', '.join(KEYS)}" for number in foreign]
    problems += [f"{key} is there more than once" for key in KEYS if sum(key == other for other, _ in value) > 1]
    for key, (fits, rule) in FIELDS.items():
        text = found.get(key)
        if key not in found:
            if key != "token" or token_needed:
                problems.append(
                    f"{key} is missing{', and POWERCONTEXT_DEERFLOW_TOKEN is not set' if key == 'token' else ''}; it {rule}",
                )
        elif not isinstance(text, str) or not fits(text):
            slip = slip_in(text) if isinstance(text, str) else ""
            problems.append(f"{key} {slip}; it {rule}" if slip else f"{key} {rule}")
    if not isinstance(found.get("shared", False), bool):
        problems.append("shared must be true or false")
    for problem in problems:
        faults.add(f"binding {position}: {problem}")
    return None if problems else Entry(**found)  # type: ignore[arg-type]


def _compare(entries: list[tuple[int, Entry]], faults: _Faults) -> None:
    """Add what is wrong between entries: a person twice, a Scope for two who have not both said so."""
    people: dict[str, int] = {}
    scopes: dict[str, tuple[int, bool]] = {}
    for position, entry in entries:
        earlier = people.setdefault(entry.owner_user_id, position)
        if earlier != position:
            faults.add(f"binding {position}: owner_user_id is that of binding {earlier}; a person has one binding")
        first, shared = scopes.setdefault(entry.scope_id, (position, entry.shared))
        if first != position and not (shared and entry.shared):
            faults.add(
                f'binding {position}: scope_id is that of binding {first}; if these people are to share their memory, both need "shared": true',
            )
