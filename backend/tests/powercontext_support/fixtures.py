"""Fixtures for the tests of the PowerContext backend; a test module asks for them with ``pytest_plugins``."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.settings.loading import reset_settings

from . import OWNER, SCOPE, TOKEN, BuildManager, Configure, StartBytes, StartHTTP
from .byte_server import ByteServer, Script
from .real_server import PrincipalServer, RealServer, find_executable
from .replies import Reply

if TYPE_CHECKING:
    from .http_server import HTTPPowerContext

_PROXY_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where pytest-xdist spreads the tests over processes, keep those with the same real server in one: there is one of each per run."""
    for item in items if config.pluginmanager.hasplugin("xdist") else []:
        fixtures = getattr(item, "fixturenames", ())
        if "powercontext_principals" in fixtures:
            item.add_marker(pytest.mark.xdist_group("principals"))
        elif "powercontext_servers" in fixtures:
            parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
            item.add_marker(pytest.mark.xdist_group("1.2.0" if "1.2.0" in parameters else "1.4.1"))


@pytest.fixture
def powercontext_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Return a function that sets the environment: a working one for loopback, changed as the keywords say (``None`` removes)."""
    for variable in _PROXY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)

    def configure(**changes: str | None) -> None:
        values = {"base_url": "http://127.0.0.1:9", "owner_user_id": OWNER, "scope_id": SCOPE, "token": TOKEN} | changes
        for name, value in values.items():
            variable = f"POWERCONTEXT_DEERFLOW_{name.upper()}"
            if value is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.setenv(variable, value)
        reset_settings()

    configure()
    yield configure
    reset_settings()


@pytest.fixture
def powercontext_manager(powercontext_environment: Configure) -> Iterator[BuildManager]:
    """Return a function that builds a manager for ``base_url``; the other keywords are settings or ``backend_config``."""
    built: list[PowerContextMemoryManager] = []

    def build(base_url: str, backend_config: dict[str, Any] | None = None, **changes: str | None) -> PowerContextMemoryManager:
        powercontext_environment(base_url=base_url, **changes)
        manager = PowerContextMemoryManager.from_config(backend_config or {})
        assert isinstance(manager, PowerContextMemoryManager)  # else the settings of the test are wrong
        built.append(manager)
        return manager

    yield build
    for manager in built:
        manager.close()


@pytest.fixture(scope="session")
def powercontext_authority() -> Any:
    """Return the run's own certificate authority, a ``trustme.CA``."""
    return pytest.importorskip("trustme").CA()


@pytest.fixture
def powercontext_ca(powercontext_authority: Any, tmp_path: Path) -> Path:
    """Return the file of the run's own certificate authority, which no system knows."""
    file = tmp_path / "powercontext-ca.pem"
    powercontext_authority.cert_pem.write_to_path(str(file))
    return file


@pytest.fixture
def powercontext_http(request: pytest.FixtureRequest) -> Iterator[StartHTTP]:
    """Return a function that starts an HTTP server, which answers all requests with the replies it is given, if any.

    ``tls=True`` is for one with a certificate of ``powercontext_ca``.
    """
    pytest.importorskip("pytest_httpserver")
    from .http_server import HTTPPowerContext

    started: list[HTTPPowerContext] = []

    def start(*replies: Reply, tls: bool = False) -> HTTPPowerContext:
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            request.getfixturevalue("powercontext_authority").issue_cert("127.0.0.1").configure_cert(context)
        started.append(HTTPPowerContext(context))
        started[-1].start()
        if replies:
            started[-1].answer(None, *replies)
        return started[-1]

    yield start
    for server in started:
        server.stop()
    for server in started:
        server.check()


@pytest.fixture
def powercontext_bytes() -> Iterator[StartBytes]:
    """Return a function that starts a byte server."""
    started: list[ByteServer] = []

    def start(script: Script, **options: Any) -> ByteServer:
        server = ByteServer(script, **options)
        server.__enter__()
        started.append(server)
        return server

    yield start
    for server in started:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def powercontext_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealServer]]:
    """Return a function that starts a real server of a version, once for the whole run."""
    started: dict[str, RealServer] = {}

    def server_of(version: str) -> RealServer:
        executable = find_executable(version)
        if executable is None:
            pytest.skip(f"no PowerContext {version} here: make test-servers installs it, or POWERCONTEXT_TEST_SERVER names its command")
        if version not in started:
            server = RealServer(tmp_path_factory.mktemp(f"powercontext-{version}"), executable=executable)
            server.start()
            started[version] = server
        return started[version]

    yield server_of
    for server in started.values():
        server.stop()


@pytest.fixture
def powercontext_server(powercontext_servers: Callable[[str], RealServer]) -> RealServer:
    """Return the run's PowerContext 1.4.1."""
    return powercontext_servers("1.4.1")


@pytest.fixture(scope="session")
def powercontext_principals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """Return the run's PowerContext 1.4.1 with tokens of their own for ``ann`` and ``ben``: ``<name>s-own-test-token``."""
    executable = find_executable()
    if executable is None:
        pytest.skip("no PowerContext 1.4.1 here: POWERCONTEXT_TEST_SERVER names its command")
    principals = {f"{name}s-own-test-token": name for name in ("ann", "ben")}
    with PrincipalServer(tmp_path_factory.mktemp("powercontext-principals"), executable=executable, principals=principals) as server:
        yield server


@pytest.fixture
def powercontext_people(powercontext_manager: BuildManager, tmp_path: Path) -> Callable[..., PowerContextMemoryManager]:
    """Return a function that builds a manager for ``base_url`` and a bindings file of these entries."""

    def build(base_url: str, *people: Mapping[str, object], **changes: Any) -> PowerContextMemoryManager:
        file = tmp_path / "bindings.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps({"bindings": people}), encoding="utf-8")
        return powercontext_manager(base_url, **({"bindings_file": str(file), "owner_user_id": None, "scope_id": None} | changes))

    return build
