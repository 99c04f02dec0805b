"""What was applied to a checkout, kept in its git directory.

A JSON object: a file's path -> its SHA-256, and an edited file's path -> the texts that were put into it. A file is
ours if it is recorded and still has that content; a text is ours if it is recorded and still stands there unchanged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checkout import InputError
from files import is_ours, replace


@dataclass(frozen=True)
class Insertion:
    """A text that was put into a file; ``before`` is what stands before it on its line, where it is part of one."""

    text: str
    before: str = ""


@dataclass
class Record:
    """The applied files with their digests, and the edited ones with our texts."""

    files: dict[str, str] = field(default_factory=dict)
    edits: dict[str, list[Insertion]] = field(default_factory=dict)


def read_record(file: Path) -> Record:
    """Return what was applied; nothing if there is no record.

    Raises:
        InputError: The record is damaged, or names what we never apply.
    """
    try:
        entries: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
        record = Record()
        for path, entry in entries.items():
            if isinstance(entry, str) and is_ours(path):
                record.files[path] = entry
            elif isinstance(entry, list) and not is_ours(path) and not _leads_out(path):
                record.edits[path] = [_insertion(**item) for item in entry]
            else:
                raise ValueError(path)
    except (ValueError, AttributeError, TypeError):
        remedy = "Delete it; then `git status` shows our files, and apply with --force takes them over."
        raise InputError(f"{file} is damaged. {remedy}") from None
    return record


def write_record(file: Path, record: Record) -> None:
    """Write the record, or remove it if nothing is applied any more."""
    entries: dict[str, Any] = dict(record.files)
    entries |= {path: [vars(insertion) for insertion in ours] for path, ours in record.edits.items() if ours}
    if not entries:
        file.unlink(missing_ok=True)
        return
    content = json.dumps(entries, indent=1, sort_keys=True).encode() + b"\n"
    if not file.exists() or file.read_bytes() != content:
        replace(file, content)


def _insertion(text: object, before: object) -> Insertion:
    if not isinstance(text, str) or not isinstance(before, str):
        raise TypeError
    return Insertion(text, before)


def _leads_out(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")
