"""A real PowerContext server that searches vectors, for ``bench_recall.py``; or why there can be none here."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from parts import server_process
from powercontext_support.real_server import RealServer, find_executable

_CAN_EXTEND = "import sqlite3, sys; print(hasattr(sqlite3.connect(':memory:'), 'enable_load_extension') and sys.version_info[:2])"


def python_with_extensions() -> str | None:
    """Return a Python like this one whose sqlite3 can load extensions, which PowerContext needs for vectors."""
    for python in dict.fromkeys(path for path in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")) if path):
        answer = subprocess.run([python, "-c", _CAN_EXTEND], capture_output=True, text=True, check=False).stdout.strip()
        if answer == str(sys.version_info[:2]):
            return python
    return None


def reason_for_none() -> str | None:
    """Return why no such server can run here, or ``None``."""
    if find_spec("wordllama") is None:
        return "no embedding model here: .venv/bin/pip install -r requirements-embeddings.txt"
    if python_with_extensions() is None:
        return f"no Python {sys.version_info.major}.{sys.version_info.minor} here whose sqlite3 can load extensions"
    return None


@contextmanager
def vector_server(folder: Path) -> Iterator[RealServer]:
    """Yield a server with embeddings in ``folder``; ``reason_for_none`` has to be ``None``."""
    with server_process("embedding_server.py") as base_url:
        settings = {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if "site-packages" in path),
            "OPENAI_API_KEY": "none",
            "POWERCONTEXT_SERVER_INFERENCE_EMBEDDING_MODEL": "openai:wordllama",
            "POWERCONTEXT_SERVER_INFERENCE_EMBEDDING_BASE_URL": base_url,
            "POWERCONTEXT_SERVER_INFERENCE_EMBEDDING_PROFILE_ID": "wordllama-256",
            "POWERCONTEXT_SERVER_INFERENCE_EMBEDDING_DIMENSION": "256",
            "POWERCONTEXT_SERVER_INFERENCE_EMBEDDING_SEND_DIMENSIONS": "false",
        }
        command = folder / "powercontext-with-vectors"
        lines = ["#!/bin/sh", *(f"export {name}={shlex.quote(value)}" for name, value in settings.items())]
        lines.append(f'exec {shlex.quote(python_with_extensions() or "")} {shlex.quote(find_executable() or "")} "$@"')
        command.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command.chmod(0o700)
        with RealServer(folder, executable=str(command)) as server:
            yield server
