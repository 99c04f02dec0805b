"""The files that this project puts into a DeerFlow checkout: which they are, what to do with each, and doing it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from fnmatch import fnmatchcase
from pathlib import Path

from checkout import MEMORY

ROOT = Path(__file__).resolve().parents[3]
TESTS = "backend/tests"
SUPPORT = f"{TESTS}/powercontext_support"

# What is ours, here and there. In these patterns `*` also matches "/".
OURS = (
    f"{MEMORY}/backends/powercontext/*",
    f"{SUPPORT}/*",
    f"{TESTS}/test_powercontext_*.py",
    f"{TESTS}/blocking_io/test_powercontext_*.py",
    "docs/POWERCONTEXT*.md",
)
# What of it stays here, and why. All else tests the backend: DeerFlow's maintainers would want to keep it.
STAYS_HERE = {
    f"{TESTS}/test_powercontext_demo.py": "a test of the demo, which stays here",
    f"{TESTS}/test_powercontext_devhost*.py": "the backend in the stand-in host",
    f"{TESTS}/test_powercontext_dialogues.py": "the tools in the stand-in host",
    f"{TESTS}/test_powercontext_docs*.py": "a test of this project's README and of the guide's commands",
    f"{TESTS}/test_powercontext_house_rules.py": "this project's own rules; DeerFlow has its linter",
    f"{TESTS}/test_powercontext_overlay*.py": "a test of these scripts",
    f"{TESTS}/test_powercontext_memory_tools.py": "the tools in the stand-in host",
    f"{TESTS}/test_powercontext_recall_level.py": "measures what recall finds, with 220 KB of data and a real server",
    f"{TESTS}/test_powercontext_remember_tool.py": "the tool in the stand-in host",
    f"{TESTS}/test_powercontext_measuring.py": "a test of the measuring scripts",
    f"{TESTS}/test_powercontext_scripts.py": "a test of the scripts",
    f"{SUPPORT}/dialogues.json": "data of test_powercontext_dialogues.py",
    f"{SUPPORT}/recall_cases/*": "data of test_powercontext_recall_level.py and its bench",
}


def is_ours(path: str) -> bool:
    """Tell whether ``path`` is one that we may put into a checkout, or may have put there in an earlier version."""
    return ".." not in path.split("/") and any(fnmatchcase(path, pattern) for pattern in OURS)


def our_files() -> dict[str, bytes]:
    """Return what this version puts into a checkout, content by path; of the tests' helpers, those in use there."""
    found = (file for folder in ("backend", "docs") for file in (ROOT / folder).rglob("*") if file.is_file())
    paths = [path for path in (file.relative_to(ROOT).as_posix() for file in found) if is_ours(path)]
    paths = [path for path in paths if "/." not in path and "/__pycache__/" not in path]
    paths = [path for path in paths if not any(fnmatchcase(path, pattern) for pattern in STAYS_HERE)]
    files = {path: (ROOT / path).read_bytes() for path in paths}
    helpers = {path for path in files if fnmatchcase(path, f"{SUPPORT}/*.py") and not path.endswith("/__init__.py")}
    unused, texts = helpers, [files[path] for path in files.keys() - helpers]
    while texts:
        used = {helper for helper in unused if any(_uses(text, Path(helper).stem) for text in texts)}
        unused, texts = unused - used, [files[helper] for helper in used]
    return {path: content for path, content in files.items() if path not in unused}


def _uses(content: bytes, helper: str) -> bool:
    """Tell whether a Python file imports a helper, or names it as a plugin of pytest."""
    inside = rf"powercontext_support\.{helper}\b|from \.{helper} "
    whole = rf"from (?:powercontext_support|\.) import .*\b{helper}\b"
    return re.search(f"{inside}|{whole}".encode(), content) is not None


def digest(content: bytes) -> str:
    """Return what the record keeps of a file's content."""
    return hashlib.sha256(content).hexdigest()


def obstacle(checkout: Path, path: str) -> str | None:
    """Return why ``path`` cannot be used at all, even with --force."""
    for folder in [*reversed(Path(path).parents), Path(path).parent / "__pycache__"]:
        if (checkout / folder).is_symlink():
            return f"{folder} is a symbolic link, and links are not followed, --force or not"
        if (checkout / folder).exists() and not (checkout / folder).is_dir():
            return f"{folder} is not a folder: move it away"
    return "is a folder: move it away" if (checkout / path).is_dir() and not (checkout / path).is_symlink() else None


def decide(file: Path, recorded: str | None, wanted: str | None, *, force: bool) -> str:
    """Return what to do with ``file``, given its digests: a step, which is one word, or why it is refused."""
    if not os.path.lexists(file):
        return "add" if wanted else "forget"
    there = digest(file.read_bytes()) if stat.S_ISREG(file.lstat().st_mode) else "no regular file"
    if there == wanted:
        return "keep" if recorded or force else "leave"
    if not force and there != recorded:
        return "changed by hand since it was applied" if recorded else "not put there by `make apply`"
    return "update" if wanted else "remove"


def carry_out(checkout: Path, steps: dict[str, str], files: dict[str, bytes]) -> None:
    """Do what ``steps`` says about each path."""
    for path, step in steps.items():
        if step in ("add", "update"):
            replace(checkout / path, files[path])
        elif step in ("remove", "forget"):
            _remove(checkout, path)


def replace(file: Path, content: bytes) -> None:
    """Write ``file`` in one piece or not at all, with the mode it has; a link in its place is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
        if file.is_file() and not file.is_symlink():
            shutil.copymode(file, temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _remove(checkout: Path, path: str) -> None:
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
