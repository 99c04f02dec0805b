"""A real PowerContext server on loopback, in a folder of its own, stopped by its process id."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import httpx

START_LIMIT_SECONDS = 110.0
TOKEN = "loopback-test-token"


def find_executable(version: str = "1.4.1") -> str | None:
    """Return the ``powercontext`` command of ``version``.

    ``POWERCONTEXT_TEST_SERVER`` may name that of 1.4.1, ``POWERCONTEXT_TEST_SERVER_1_2_0`` that of 1.2.0. Without them
    it is the one beside this Python, and the one in ``.venv-1.2.0``, which ``make test-servers`` makes.
    """
    variable = "POWERCONTEXT_TEST_SERVER" + ("" if version == "1.4.1" else f"_{version.replace('.', '_')}")
    folder = Path(sys.executable).parent if version == "1.4.1" else Path(__file__).parents[3] / f".venv-{version}" / "bin"
    return shutil.which(os.environ.get(variable, str(folder / "powercontext")))


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RealServer:
    """``powercontext server run`` with SQLite in ``folder`` and a bearer token; also the hand of "another host" on its API."""

    def __init__(self, folder: Path, *, executable: str, token: str = TOKEN, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = dict(settings or {})
        self.token = token
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._executable = executable
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it is ready.

        Raises:
            RuntimeError: It ended, or was not ready within ``START_LIMIT_SECONDS``; its log is in ``folder``.
        """
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("POWERCONTEXT_")}
        settings = {
            "POWERCONTEXT_HOME": str(self.folder),
            "POWERCONTEXT_SERVER_WORKSPACE": str(self.folder),
            "POWERCONTEXT_SERVER_AUTH_ENABLED": "true",
            "POWERCONTEXT_SERVER_AUTH_TOKEN": self.token,
        } | self._settings
        command = self._command()
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=inherited | settings, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _command(self) -> list[str]:
        return [self._executable, "server", "run", "--host", "127.0.0.1", "--port", str(self.port), "--no-env-file"]

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_LIMIT_SECONDS
        with httpx.Client(trust_env=False, timeout=5.0, verify=False) as client:  # plain HTTP: certificates are read for nothing
            while time.monotonic() < end and self._process.poll() is None:
                try:
                    if client.get(f"{self.base_url}/health/ready").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(0.05)
        raise RuntimeError(f"the PowerContext server did not become ready; see {self.folder / 'server.log'}")

    def stop(self, *, kill: bool = False) -> None:
        """End the server: SIGTERM and, if it lingers for 10 s or ``kill`` is set, SIGKILL. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def request(self, method: str, path: str, body: object | None = None) -> httpx.Response:
        """Call the API as another client of this server would."""
        return self.request_as(self.token, method, path, body)

    def request_as(self, token: str, method: str, path: str, body: object | None = None) -> httpx.Response:
        """Do the same with another token."""
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=self.base_url, trust_env=False, timeout=30.0, headers=headers, verify=False) as client:
            return client.request(method, path, json=body)

    def create_scope(self, title: str) -> str:
        """Create a Scope and return its id."""
        body = {"title": title, "summary": f"{title}, made by a test", "idempotency_key": title}
        return str(self.request("POST", "/v1/scopes", body).raise_for_status().json()["scope_id"])

    def remember(self, scope_id: str, kind: str, text: str) -> object:
        """Store a memory and return the server's answer."""
        body = {"scope_id": scope_id, "kind": kind, "text": text}
        return self.request("POST", "/v1/memory/remember", body).raise_for_status().json()

    def count_requests(self, operation: str) -> int:
        """Return how often the server was asked for ``operation``, an operationId, as its metrics tell."""
        metrics = self.request("GET", "/metrics").raise_for_status().text
        counts = re.findall(rf'^powercontext_server_transport_requests_total{{operation="{operation}",.*}} (\S+)$', metrics, re.MULTILINE)
        return sum(int(float(count)) for count in counts)


class PrincipalServer(RealServer):
    """A server with a token for each principal, as an operator's own launcher makes it; ``token`` is the administrator's."""

    def __init__(self, folder: Path, *, executable: str, principals: Mapping[str, str]) -> None:
        """``principals`` are the names of the other tokens' holders, by token."""
        super().__init__(folder, executable=executable, token="administrators-test-token")
        (folder / "principals.json").write_text(json.dumps({self.token: "administrator", **principals}), encoding="utf-8")

    def _command(self) -> list[str]:
        launcher = Path(__file__).with_name("principals.py")
        return [str(Path(self._executable).resolve().parent / "python"), str(launcher), str(self.port), str(self.folder / "principals.json")]
