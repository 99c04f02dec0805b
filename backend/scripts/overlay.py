"""Puts the PowerContext backend, its tests and its guide into a DeerFlow checkout, and takes them out again.

``make apply`` and ``make unapply`` run it. What was applied is recorded in the checkout's git directory, as path ->
SHA-256: a file is ours if it is recorded and still has that content. Anything else is refused, and then nothing is
changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = "powercontext-overlay.json"
MEMORY = "backend/packages/harness/deerflow/agents/memory"

# What is ours, here and there. In these patterns `*` also matches "/".
OURS = (
    f"{MEMORY}/backends/powercontext/*",
    "backend/tests/powercontext_support/*",
    "backend/tests/test_powercontext_*.py",
    "backend/tests/blocking_io/test_powercontext_*.py",
    "docs/POWERCONTEXT*.md",
)
# Tests of what stays here: the demo, the stand-in host, the tool in the stand-in host, this script, the measuring scripts.
EXCLUDED = {f"backend/tests/test_powercontext_{name}.py" for name in ("demo", "devhost", "remember_tool", "overlay", "scripts")}
# A DeerFlow that can load memory backends has these files.
MARKS = ("backend/packages/harness/pyproject.toml", f"{MEMORY}/manager.py", f"{MEMORY}/backends/__init__.py")


class InputError(Exception):
    """What was given cannot be used; the message says why and what to do."""


def find_checkout(name: str) -> tuple[Path, Path]:
    """Return the DeerFlow checkout that ``name`` names, and where its record belongs; raise ``InputError`` if it is none."""
    checkout = Path(name).expanduser().resolve()
    remedy = "Give the top folder of a DeerFlow checkout, one that has memory backends."
    for mark in MARKS:
        if not (checkout / mark).is_file():
            raise InputError(f"{checkout} {'has no ' + mark if checkout.exists() else 'does not exist'}. {remedy}")
    environment = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")}
    command = ["git", "-C", str(checkout), "rev-parse", "--show-toplevel", "--git-path", RECORD]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("There is no git command here. Install git: it says where the record of the applied files belongs.") from None
    top, _, record_file = done.stdout.strip().partition("\n")
    if done.returncode or Path(top).resolve() != checkout:
        raise InputError(f"{checkout} is not the top of a git checkout (git says: {(done.stderr or done.stdout).strip()}). {remedy}")
    return checkout, checkout / record_file


def read_record(file: Path) -> dict[str, str]:
    """Return the applied files with their digests; none if nothing was applied."""
    try:
        record = json.loads(file.read_bytes()) if file.exists() else {}
        if all(isinstance(digest, str) and is_ours(path) for path, digest in record.items()):
            return dict(record)
    except (ValueError, AttributeError):
        pass
    raise InputError(f"{file} is damaged. Delete it; then `git status` shows our files, and apply with --force takes them over.")


def is_ours(path: str) -> bool:
    """Tell whether ``path`` is one that we may put into a checkout."""
    return ".." not in path.split("/") and any(fnmatchcase(path, pattern) for pattern in OURS)


def our_files() -> dict[str, bytes]:
    """Return what this version puts into a checkout: content by path."""
    found = (file for folder in ("backend", "docs") for file in (ROOT / folder).rglob("*") if file.is_file())
    paths = [path for path in (file.relative_to(ROOT).as_posix() for file in found) if is_ours(path) and path not in EXCLUDED]
    return {path: (ROOT / path).read_bytes() for path in paths if "/." not in path and "/__pycache__/" not in path}


def obstacle(checkout: Path, path: str) -> str | None:
    """Return why ``path`` cannot be used at all, even with --force."""
    for folder in [*reversed(Path(path).parents), Path(path).parent / "__pycache__"]:
        if (checkout / folder).is_symlink():
            return f"{folder} is a symbolic link, and links are not followed, --force or not"
        if (checkout / folder).exists() and not (checkout / folder).is_dir():
            return f"{folder} is not a folder: move it away"
    return "is a folder: move it away" if (checkout / path).is_dir() and not (checkout / path).is_symlink() else None


def decide(file: Path, recorded: str | None, wanted: str | None, *, force: bool) -> str:
    """Return what to do with ``file``, given its digests: a step, which is one word, or why it is refused, which is more."""
    if not os.path.lexists(file):
        return "add" if wanted else "forget"
    there = hashlib.sha256(file.read_bytes()).hexdigest() if stat.S_ISREG(file.lstat().st_mode) else "no regular file"
    if there == wanted:
        return "keep" if recorded or force else "leave"
    if not force and there != recorded:
        return "changed by hand since it was applied" if recorded else "not put there by `make apply`"
    return "update" if wanted else "remove"


def replace(file: Path, content: bytes) -> None:
    """Write ``file`` in one piece or not at all; a link in its place is replaced, not followed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def remove(checkout: Path, path: str) -> None:
    """Remove a file, what Python compiled from it, and the folders that are empty then."""
    file = checkout / path
    file.unlink(missing_ok=True)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()
    for folder in [file.parent / "__pycache__", *file.parents[: path.count("/")]]:
        cache = folder / "__pycache__"
        # DeerFlow takes a folder for a backend also if only compiled modules are left in it.
        if folder.is_dir() and os.listdir(folder) == [cache.name] and is_ours(cache.relative_to(checkout).as_posix()):
            shutil.rmtree(cache)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def carry_out(checkout: Path, steps: dict[str, str], files: dict[str, bytes]) -> None:
    """Do what ``steps`` says about each path."""
    for path, step in steps.items():
        if step in ("add", "update"):
            replace(checkout / path, files[path])
        elif step in ("remove", "forget"):
            remove(checkout, path)


def write_record(file: Path, record: dict[str, str]) -> None:
    """Write the record, or remove it if nothing is applied any more."""
    if not record:
        file.unlink(missing_ok=True)
    elif record != read_record(file):
        replace(file, json.dumps(record, indent=1).encode() + b"\n")


def run(command: str, checkout: Path, record_file: Path, *, force: bool, dry_run: bool) -> int:
    """Apply or unapply, and say what was done; return 1 if a file was in the way, 0 otherwise."""
    recorded, files = read_record(record_file), our_files() if command == "apply" else {}
    wanted = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    paths = sorted(recorded | wanted)
    steps = {path: obstacle(checkout, path) or decide(checkout / path, recorded.get(path), wanted.get(path), force=force) for path in paths}
    refused = [f"{path}: {step}" for path, step in steps.items() if " " in step]
    if refused:
        advice = "Nothing was changed. Move these away, or lose what is in them with --force (make: ARGS=--force)."
        print(*refused, advice, sep="\n", file=sys.stderr)
        return 1
    if dry_run:
        print(*[f"{step} {path}" for path, step in steps.items() if step != "keep"], "A dry run: nothing was changed.", sep="\n")
        return 0
    applied = {path: digest for path, digest in wanted.items() if steps[path] != "leave"}
    # What is about to be added is recorded first, so that after a crash it is still known as ours.
    write_record(record_file, recorded | {path: digest for path, digest in applied.items() if steps[path] == "add"})
    carry_out(checkout, steps, files)
    write_record(record_file, applied)
    added, updated, removed = (list(steps.values()).count(step) for step in ("add", "update", "remove"))
    print(f"Files: {added} added, {updated} updated, {removed} removed." if added + updated + removed else "Nothing to do.")
    for path in sorted(wanted.keys() - applied.keys()):
        print(f"{path}: was there already, the same; it stays when you unapply.")
    if command == "apply":
        print("\n" + (ROOT / "config.example.yaml").read_text(encoding="utf-8"), end="")
    return 0


def main() -> int:
    """Read the command line; return 0, 1 if a file was in the way, or 2 if the input cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["apply", "unapply"])
    parser.add_argument("checkout", help="the top folder of a DeerFlow checkout")
    parser.add_argument("--force", action="store_true", help="overwrite or remove also what is not ours or was changed by hand")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    arguments = parser.parse_args()
    try:
        return run(arguments.command, *find_checkout(arguments.checkout), force=arguments.force, dry_run=arguments.dry_run)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
