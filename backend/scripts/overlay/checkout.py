"""Which DeerFlow checkout this is, and what of the backend will not work there.

Everything is read from its files; none of its code is run.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

RECORD = "powercontext-overlay.json"
HARNESS = "backend/packages/harness"
MEMORY = f"{HARNESS}/deerflow/agents/memory"
EXTENSION_API = "backend/packages/extension-api/deerflow_extension_api"
# What is the same in every release of this line is what the plugin with the model's tools was written for.
API_LINE = (0, 2)
TOOLS_SINCE = (0, 2, 2)

REMEDY = "Give the top folder of a DeerFlow checkout."
OTHER_CONTRACT = "another contract for memory backends than this one is written for. Update DeerFlow, or this project."
NO_QUERY = "It hands backends no request, so `mode: middleware` recalls nothing: use `mode: tool`, or update DeerFlow."
NO_TOOLS = "It has no plugin tools (extension API 0.2.2), so no `remember`, `recall`, `correct`, `forget`: update DeerFlow."
NEWER = "Its extension API is newer than 0.2: the tools may be missing. Look for a newer version of this project."
TOO_OLD = "It is too old: DeerFlow has memory backends since July 2026. Update it."


class InputError(Exception):
    """What was given cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Host:
    """What a DeerFlow checkout has of the things that the backend needs."""

    version: str
    api: tuple[int, ...]
    forwards_query: bool
    plugin_tools: bool

    @property
    def mode(self) -> str:
        """Return the ``memory.mode`` in which recall works there."""
        return "middleware" if self.forwards_query else "tool"

    def __str__(self) -> str:
        return f"DeerFlow {self.version}, extension API {'.'.join(map(str, self.api)) or 'none'}"


def find_checkout(name: str) -> tuple[Path, Path]:
    """Return the DeerFlow checkout that ``name`` names, and where its record belongs.

    Raises:
        InputError: ``name`` is not the top folder of a DeerFlow checkout, or there is no git here.
    """
    checkout = Path(name).expanduser().resolve()
    if not (checkout / HARNESS / "pyproject.toml").is_file():
        why = f"has no {HARNESS}/pyproject.toml" if checkout.exists() else "does not exist"
        raise InputError(f"{checkout} {why}. {REMEDY}")
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    command = ["git", "-C", str(checkout), "rev-parse", "--show-toplevel", "--git-path", RECORD]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("There is no git command here. Install git: it says where the record belongs.") from None
    top, _, record_file = done.stdout.strip().partition("\n")
    if done.returncode or Path(top).resolve() != checkout:
        said = (done.stderr or done.stdout).strip()
        raise InputError(f"{checkout} is not the top of a git checkout (git says: {said}). {REMEDY}")
    return checkout, checkout / record_file


def read_host(checkout: Path) -> Host:
    """Return what this DeerFlow has.

    Raises:
        InputError: It has no memory backends, or another contract for them.
    """
    manager = _text(checkout / MEMORY / "manager.py")
    if not (checkout / MEMORY / "backends/__init__.py").is_file() or not manager:
        raise InputError(f"{checkout} has no {MEMORY}/backends. {TOO_OLD}")
    contract = manager.partition("class MemoryManager(")[2]
    methods = all(f"def {method}(" in contract for method in ("add", "get_context", "from_config"))
    if not methods or "class MemoryManagerError(" not in manager:
        raise InputError(f"{checkout} has {OTHER_CONTRACT}")
    version = re.search(r'^version = "([^"]+)"', _text(checkout / HARNESS / "pyproject.toml"), re.MULTILINE)
    api = re.search(r'^API_VERSION = "(\d+(?:\.\d+)*)', _text(checkout / EXTENSION_API / "__init__.py"), re.MULTILINE)
    numbers = tuple(map(int, api[1].split("."))) if api else ()
    arguments = re.search(r"def get_context\(([^)]*)\)", contract)
    return Host(
        version=version[1] if version else "of an unknown version",
        api=numbers,
        forwards_query="def context_query_kwargs(" in manager or (arguments is not None and "query:" in arguments[1]),
        plugin_tools=numbers >= TOOLS_SINCE and "class ModelTool" in _text(checkout / EXTENSION_API / "plugins.py"),
    )


def limits(host: Host) -> list[str]:
    """Return what will not work in ``host``, a sentence each."""
    found = [] if host.forwards_query else [NO_QUERY]
    if not host.plugin_tools:
        return [*found, NO_TOOLS]
    return [*found, NEWER] if host.api[:2] > API_LINE else found


def _text(file: Path) -> str:
    """Return the text of a file; nothing if it is not there."""
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
