"""What the tests of `make apply` share: a small project like this one, checkouts like DeerFlow's, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = "backend/scripts/overlay"
MEMORY = "backend/packages/harness/deerflow/agents/memory"
BACKEND = f"{MEMORY}/backends/powercontext"
MANAGER = f"{BACKEND}/manager.py"
TEST = "backend/tests/test_powercontext_client.py"
GUIDE = "docs/POWERCONTEXT.md"
APPLIED = [
    f"{BACKEND}/README.md", MANAGER, "backend/tests/blocking_io/test_powercontext_memory_backend.py", "backend/tests/powercontext_support/captured/1.4.1/a.json",
    TEST, GUIDE, "docs/POWERCONTEXT_zh.md",
]  # fmt: skip
NOT_APPLIED = ["docs/DESIGN.md", "backend/devhost/demo.py", "backend/tests/test_powercontext_demo.py", f"{BACKEND}/__pycache__/a.pyc", f"{BACKEND}/.cache/a"]
API = "backend/packages/extension-api/deerflow_extension_api"

# A DeerFlow as of October 2026, as far as the command looks at it: what it has, and the files it edits.
CONTRACT = """\
class MemoryManagerError(RuntimeError): ...

class MemoryManager(BaseModel):
    def add(self, thread_id, messages): ...
    def get_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        query: str | None = None,
    ) -> str: ...
    def from_config(cls, backend_config): ...
"""
DEERFLOW = {
    "backend/packages/harness/pyproject.toml": '[project]\nname = "deerflow-harness"\nversion = "2.2.0"\n',
    f"{MEMORY}/manager.py": CONTRACT,
    f"{MEMORY}/backends/__init__.py": "",
    f"{API}/__init__.py": 'API_VERSION = "0.2.3"\n',
    f"{API}/plugins.py": "class ModelTool: ...\n",
    "backend/tests/test_other.py": "one\n",
    "docs/GUIDE.md": "one\n",
    ".gitignore": "__pycache__/\nconfig.yaml\n",
}
WEBSITE_PAGE = """\
manager_class: deermem # backend selector: deermem | openviking | noop

| `noop` | Local | Nothing |

# Backend selector: deermem (default) | noop | openviking | a path

## Global vs per-agent memory

Text.
"""
# DeerFlow's own files that a backend is named in, with the lines that the edits look for.
EDITED = {
    ".env.example": "# OTHER=1\n# OPENVIKING_API_KEY=x\n# LAST=1\n",
    "README.md": "# DeerFlow\n\nSee the [OpenViking memory backend](docs/O.md),\nwhich is there.\n\nSee\nthe [Honcho backend guide](h/README.md).\n\nThe end.\n",
    f"{MEMORY}/AGENTS.md": "### Memory\n\n- `backends/mem0/`, `backends/openviking/`, and others.\n\nHoncho configuration rejects zero.\nAnd negative ones.\n\n#### Next\n",
    f"{MEMORY}/backends/README.md": "# Backends\n\n- `deermem/` - own.\n- `openviking/` - remote,\n  one user.\n\nText.\n\n## Reference\n\nEnd.\n",
    "config.example.yaml": "#   manager_class - Backend selector: registered name (deermem/noop) or path\nmemory:\n  manager_class: deermem\n  # backend_config:\n  backend_config:\n    max: 1\n",
    "frontend/src/content/en/application/configuration.mdx": "x: deermem # backend selector: deermem | openviking | dotted\n\nSee\n`docs/OPENVIKING.md` in the repository for\nmore.\n\n## Next\n",
    "frontend/src/content/en/harness/memory.mdx": WEBSITE_PAGE,
    "scripts/AGENTS.md": "- Tests:\n  `test_openviking_memory_backend.py` (locks it); and\n  `test_last.py`.\n",
}


def write(folder: Path, files: list[str] | dict[str, str], text: str = "one\n") -> None:
    for path, content in (files if isinstance(files, dict) else dict.fromkeys(files, text)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8", newline="")


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def commit(folder: Path, files: dict[str, str]) -> None:
    """Put the files into a checkout and commit everything."""
    write(folder, files)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "next")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return each path below ``folder``, the record included, with its time and content."""
    found = sorted(path for path in folder.rglob("*") if ".git" not in path.parts or path.name == "powercontext-overlay.json")
    return {str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.read_bytes()) if path.is_file() else (0, b"") for path in found}


def run(project: Path, command: str, *arguments: str | Path, code: int = 0, **environment: str) -> str:
    process = [sys.executable, str(project / SCRIPT), command, *map(str, arguments)]
    done = subprocess.run(process, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr
