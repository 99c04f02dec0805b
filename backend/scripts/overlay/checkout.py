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
        raise InputError(f"{checkout} {f'has no {HARNESS}/pyproject.toml' if checkout.exists() else 'does not exist'}. {REMEDY}")
    environment = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")}
    command = ["git", "-C", str(checkout), "rev-parse", "--show-toplevel", "--git-path", RECORD]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("There is no git command here. Install git: it says where the record of what was applied belongs.") from None
    top, _, record_file = done.stdout.strip().partition("\n")
    if done.returncode or Path(top).resolve() != checkout:
        raise InputError(f"{checkout} is not the top of a git checkout (git says: {(done.stderr or done.stdout).strip()}). {REMEDY}")
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
    if "class MemoryManagerError(" not in manager or not all(f"def {method}(" in contract for method in ("add", "get_context", "from_config")):
        raise InputError(f"{checkout} has another contract for memory backends than the MemoryManager this one is written for. Update DeerFlow, or this project.")
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
    found = []
    if not host.forwards_query:
        found.append("It does not hand the user's message to memory backends, so recall in `mode: middleware` finds nothing: use `mode: tool`, or update DeerFlow (September 2026 or later).")
    if not host.plugin_tools:
        found.append("It has no plugin tools, so there are no tools `remember`, `recall`, `correct` and `forget`: update DeerFlow (extension API 0.2.2 or later) to have them.")
    elif host.api[:2] > API_LINE:
        found.append("Its extension API is newer than the 0.2 that the plugin is written for: the tools may be missing; DeerFlow's log says so at its start. Look for a newer version of this project.")
    return found


def _text(file: Path) -> str:
    """Return the text of a file; nothing if it is not there."""
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
