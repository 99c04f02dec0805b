"""Texts that are put into DeerFlow's own files: each once, where its anchor is, and out again without anything else.

What people write around our text stays; what they change within it is theirs, and is left alone and named.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from checkout import InputError
from files import obstacle
from record import Insertion

# DeerFlow's scripts/check_agent_guidance.py warns above these sizes in bytes: of an AGENTS.md by its depth, and of it
# together with those above it.
ROOT_GUIDANCE, MODULE_GUIDANCE, LOCAL_GUIDANCE, GUIDANCE_CHAIN = 16 * 1024, 24 * 1024, 40 * 1024, 80 * 1024
OUR_NAME = "powercontext"


@dataclass(frozen=True)
class Edit:
    """One text for one file.

    Attributes:
        path: The file, below the checkout.
        what: What the text is, for people.
        places: Where it may go, best first: the pattern whose end is the place, and the text there.
        needed: Whether it is worth saying that there is no such place.
    """

    path: str
    what: str
    places: tuple[tuple[str, str], ...]
    needed: bool = True


@dataclass(frozen=True)
class Change:
    """What a file has now, what it is to have, which of that is ours, and what there is to say of it."""

    now: str = ""
    then: str = ""
    ours: tuple[Insertion, ...] = ()
    said: tuple[str, ...] = ()


def plan(checkout: Path, path: str, edits: Iterable[Edit], recorded: list[Insertion]) -> Change:
    """Return the change of a file: our earlier texts out, and those of ``edits`` in."""
    wanted = [edit for edit in edits if edit.path == path]
    try:
        now = _read(checkout, path)
    except InputError as error:
        said = (str(error),) if recorded or any(edit.needed for edit in wanted) else ()
        return Change(ours=tuple(recorded), said=said)
    clean = _without(now, recorded)
    if OUR_NAME in clean.lower():
        if not recorded:
            return Change(now, now, said=("speaks of PowerContext already; nothing is added",) if wanted else ())
        said = ("our text was changed by hand, and stays as it is",)
        return Change(now, now, tuple(recorded), said) if wanted else Change(now, clean, said=said)
    return _with(checkout, path, Change(now, clean), wanted)


def write(file: Path, change: Change) -> bytes:
    """Return the bytes for ``file``: the new text with the line ends that the file has."""
    crlf = b"\r\n" in file.read_bytes()
    return (change.then.replace("\n", "\r\n") if crlf else change.then).encode()


def diff(path: str, change: Change) -> str:
    """Return the change as people read it."""
    now, then = change.now.splitlines(), change.then.splitlines()
    return "\n".join(difflib.unified_diff(now, then, path, path, n=1, lineterm=""))


def _with(checkout: Path, path: str, change: Change, wanted: list[Edit]) -> Change:
    """Put the texts of ``wanted`` in, as far as there is a place for them."""
    text, ours, said = change.then, [], []
    for edit in wanted:
        place = next((found for found in (_place(text, *place) for place in edit.places) if found), None)
        if place is None:
            said += [f"no place found for {edit.what}"] if edit.needed else []
            continue
        position, insertion = place
        longer = text[:position] + insertion.text + text[position:]
        if path.endswith("AGENTS.md") and _too_large(checkout, path, longer):
            said.append(f"{edit.what} would make it larger than DeerFlow allows")
            continue
        text = longer
        ours.append(insertion)
    return Change(change.now, text, tuple(ours), tuple(said))


def _place(content: str, pattern: str, text: str) -> tuple[int, Insertion] | None:
    match = re.search(pattern, content, re.MULTILINE)
    if match is None:
        return None
    line_start = content.rfind("\n", 0, match.end()) + 1
    before = "" if "\n" in text else content[max(line_start, match.end() - 20) : match.end()]
    return match.end(), Insertion(text, before)


def _without(content: str, insertions: list[Insertion]) -> str:
    """Take our texts out, each where it stands unchanged and once."""
    for insertion in sorted(insertions, key=lambda insertion: -len(insertion.text)):
        if content.count(insertion.before + insertion.text) == 1:
            content = content.replace(insertion.before + insertion.text, insertion.before)
    return content


def _read(checkout: Path, path: str) -> str:
    """Return the text of a file, with plain line ends.

    Raises:
        InputError: It cannot be edited; the message says why.
    """
    file = checkout / path
    if obstacle(checkout, path) or file.is_symlink():
        raise InputError("is no plain file; it is left alone")
    if not file.exists():
        raise InputError("is not there")
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        raise InputError("is not UTF-8; it is left alone") from None
    if text.count("\r\n") not in (0, text.count("\n")):
        raise InputError("has line ends of two kinds; it is left alone")
    return text.replace("\r\n", "\n")


def _too_large(checkout: Path, path: str, text: str) -> bool:
    depth = len(PurePosixPath(path).parts)
    size = len(text.encode())
    above = [checkout / folder / "AGENTS.md" for folder in list(PurePosixPath(path).parents)[1:]]
    chain = size + sum(file.stat().st_size for file in above if file.is_file())
    return size > {1: ROOT_GUIDANCE, 2: MODULE_GUIDANCE}.get(depth, LOCAL_GUIDANCE) or chain > GUIDANCE_CHAIN
