"""Puts the PowerContext backend, its tests and its guide into a DeerFlow checkout, and takes them out again.

``make apply`` and ``make unapply`` run it. DeerFlow's own files are edited to name the backend. What was applied is
recorded in the checkout's git directory. A file that is in the way is refused, and then nothing is changed; an edit
that has no place is named, and the rest is done.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from checkout import InputError, find_checkout, limits, read_host
from edits import Change, diff, plan, write
from files import carry_out, decide, digest, obstacle, our_files, replace
from proposal import next_steps, still_named
from record import Record, read_record, write_record
from texts import EDITS


def say(*lines: str) -> None:
    """Print the lines now. Nobody reading any more (``| head -1``) stops nothing."""
    try:
        print("".join(f"{line}\n" for line in lines), end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(command: str, checkout: Path, record_file: Path, *, force: bool, dry_run: bool, only_files: bool) -> int:
    """Apply or unapply, and say what was done; return 1 if a file was in the way, 0 otherwise."""
    host = read_host(checkout) if command == "apply" else None
    if host:
        say(f"{checkout}: {host}.", *[f"! {limit}" for limit in limits(host)])
    record, files = read_record(record_file), our_files() if host else {}
    edits = EDITS if host and not only_files else ()
    wanted = {path: digest(content) for path, content in files.items()}
    steps = {
        path: obstacle(checkout, path) or decide(checkout / path, record.files.get(path), wanted.get(path), force=force)
        for path in sorted(record.files | wanted)
    }  # fmt: skip
    refused = [f"{path}: {step}" for path, step in steps.items() if " " in step]
    if refused:
        advice = "Nothing was changed. Move these away, or lose what is in them with --force (make: ARGS=--force)."
        print(*refused, advice, sep="\n", file=sys.stderr)
        return 1
    edited = sorted({edit.path for edit in edits} | record.edits.keys())
    changes = {path: plan(checkout, path, edits, record.edits.get(path, [])) for path in edited}
    if dry_run:
        say(*[f"{step} {path}" for path, step in steps.items() if step != "keep"])
        say(*[line for path, change in changes.items() for line in shown(path, change)])
        say("A dry run: nothing was changed.")
        return 0
    applied = Record(files={path: found for path, found in wanted.items() if steps[path] != "leave"})
    applied.edits |= {path: list(change.ours) for path, change in changes.items()}
    make(checkout, record_file, (record, applied), steps, files, changes)
    report(steps, changes, sorted(wanted.keys() - applied.files.keys()))
    say(*(["", *next_steps(checkout, host)] if host else still_named(checkout)))
    return 0


def make(
    checkout: Path,
    record_file: Path,
    records: tuple[Record, Record],
    steps: dict[str, str],
    files: dict[str, bytes],
    changes: dict[str, Change],
) -> None:
    """Change the checkout. What is about to be put there is recorded first: after a crash it is still known as ours."""
    before, after = records
    both = Record(before.files | {path: found for path, found in after.files.items() if steps[path] == "add"})
    for path in before.edits | after.edits:
        both.edits[path] = list(dict.fromkeys(before.edits.get(path, []) + after.edits.get(path, [])))
    write_record(record_file, both)
    carry_out(checkout, steps, files)
    for path, change in changes.items():
        if change.then != change.now:
            replace(checkout / path, write(checkout / path, change))
    write_record(record_file, after)


def report(steps: dict[str, str], changes: dict[str, Change], left: list[str]) -> None:
    """Say what was done."""
    added, updated, removed = (list(steps.values()).count(step) for step in ("add", "update", "remove"))
    edited = [path for path, change in changes.items() if change.then != change.now]
    done = f"Files: {added} added, {updated} updated, {removed} removed, {len(edited)} of DeerFlow's own edited."
    say(done if added + updated + removed + len(edited) else "Nothing to do.")
    say(*[f"{path}: was there already, the same; it stays when you unapply." for path in left])
    say(*[f"edited {path}" for path in edited])
    say(*[f"{path}: {what}." for path, change in changes.items() for what in change.said])


def shown(path: str, change: Change) -> list[str]:
    """Return what a dry run says of an edit."""
    edit = [f"edit {path}", diff(path, change)] if change.then != change.now else []
    return [*edit, *[f"{path}: {what}." for what in change.said]]


def main() -> int:
    """Read the command line; return 0, 1 if a file was in the way, or 2 if the input cannot be used."""
    parser = argparse.ArgumentParser(prog="overlay", description=__doc__)
    parser.add_argument("command", choices=["apply", "unapply"])
    parser.add_argument("checkout", help="the top folder of a DeerFlow checkout")
    force = "overwrite or remove also what is not ours or was changed by hand"
    parser.add_argument("--force", action="store_true", help=force)
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    only_files = "leave DeerFlow's own files alone: its README, its guidance and its examples do not name the backend"
    parser.add_argument("--only-files", action="store_true", help=only_files)
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path that the terminal cannot show stops nothing
    try:
        checkout, record_file = find_checkout(arguments.checkout)
        options = {"force": arguments.force, "dry_run": arguments.dry_run, "only_files": arguments.only_files}
        return run(arguments.command, checkout, record_file, **options)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
