"""A real DeerFlow Gateway in a process of its own, with local users and ``stub_model``; reached over HTTP alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from uuid import uuid4

import httpx

from .real_server import free_port

START_LIMIT_SECONDS: Final = 100.0

_BACKEND = Path(__file__).resolve().parents[2]

_CONFIG = """\
log_level: info
models:
  - {{name: stub, use: "powercontext_support.stub_model:StubModel", model: stub}}
sandbox: {{use: "deerflow.sandbox.local:LocalSandboxProvider"}}
database: {{backend: sqlite, sqlite_dir: {home}}}
memory:
  enabled: true
  injection_enabled: true
  manager_class: {manager_class}
  mode: {mode}
"""


class Gateway:
    """``uvicorn app.gateway.app:app`` of the checkout this file is in, with its data in ``folder``.

    Attributes:
        ids: The users' ids, by name.
        log: The file with what the last one that was started printed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.ids: dict[str, str] = {}
        self.log = folder / "gateway.log"
        self.base_url = ""

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def start(self, *, mode: str = "tool", manager_class: str = "powercontext", settings: Mapping[str, str] | None = None) -> None:
        """Start it anew, with ``settings`` as ``POWERCONTEXT_DEERFLOW_…``, and wait until it answers.

        Raises:
            RuntimeError: It ended, or did not answer in time. The message ends as its log does.
        """
        self.stop()
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        config = self._folder / "config.yaml"
        config.write_text(_CONFIG.format(home=self._folder / "data", manager_class=manager_class, mode=mode), encoding="utf-8")
        extensions = self._folder / "extensions_config.json"
        extensions.write_text("{}", encoding="utf-8")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("POWERCONTEXT_", "DEER_FLOW_")) and not name.lower().endswith("_proxy")}
        places = {"DEER_FLOW_CONFIG_PATH": config, "DEER_FLOW_EXTENSIONS_CONFIG_PATH": extensions, "DEER_FLOW_HOME": self._folder / "home"}
        path = [*(str(_BACKEND / "packages" / name) for name in ("harness", "extension-api")), str(_BACKEND), str(_BACKEND / "tests")]
        environment = inherited | {name: str(value) for name, value in places.items()} | {"PYTHONPATH": os.pathsep.join(path)}
        environment |= {f"POWERCONTEXT_DEERFLOW_{name.upper()}": value for name, value in (settings or {}).items()}
        command = [sys.executable, "-m", "uvicorn", "app.gateway.app:app", "--host", "127.0.0.1", "--port", str(port)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, cwd=_BACKEND, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_until_it_answers(self._process)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                if httpx.get(f"{self.base_url}/health", trust_env=False, timeout=5.0).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        self.stop()
        last = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        raise RuntimeError(f"DeerFlow's Gateway did not start: {' / '.join(last)}")

    def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL if it lingers for 20 s. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def sign_up(self, name: str) -> None:
        """Register a local user."""
        body = {"email": f"{name}@example.com", "password": f"{name}-of-the-tests"}
        self.ids[name] = str(self.visitor().post("/api/v1/auth/register", json=body).raise_for_status().json()["id"])

    def sign_in(self, name: str) -> Person:
        """Sign a registered user in."""
        client = self.visitor()
        form = {"username": f"{name}@example.com", "password": f"{name}-of-the-tests"}
        client.post("/api/v1/auth/login/local", data=form).raise_for_status()
        client.headers["X-CSRF-Token"] = client.cookies["csrf_token"]
        return Person(client)

    def visitor(self) -> httpx.Client:
        """Return a client that is not signed in. It keeps no connection: the Gateway closes those on which it answered an unexpected 500."""
        return httpx.Client(base_url=self.base_url, trust_env=False, timeout=60.0, limits=httpx.Limits(max_keepalive_connections=0))


class Person:
    """Somebody who is signed in.

    Attributes:
        page: A client for DeerFlow's API, as this person's browser would use it.
    """

    def __init__(self, page: httpx.Client) -> None:
        self.page = page

    def new_thread(self) -> str:
        """Begin a conversation and return its id."""
        thread_id = str(uuid4())
        self.page.post("/api/threads", json={"thread_id": thread_id}).raise_for_status()
        return thread_id

    def run(self, text: str, thread_id: str | None = None) -> dict[str, Any]:
        """Send a message, in a new conversation unless one is named, and return the state after the run."""
        body = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": text}]}}
        response = self.page.post(f"/api/threads/{thread_id or self.new_thread()}/runs/wait", json=body)
        return dict(response.raise_for_status().json())

    def say(self, text: str, thread_id: str | None = None) -> str:
        """Do the same and return the model's answer."""
        return str(self.run(text, thread_id)["messages"][-1]["content"])

    def told(self, text: str) -> dict[str, Any]:
        """Send a message in a new conversation and return what the memory tool told the model."""
        return dict(json.loads(self.say(text)))
