"""The doctor names what is wrong with a set-up, and the remedy, and shows nothing private."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, Configure, StartHTTP
from powercontext_support.faults import FAULTS
from powercontext_support.real_server import RealServer
from powercontext_support.replies import Reply, answer, error

from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main
from deerflow.agents.memory.backends.powercontext.host import host_forwards_query

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("yaml")

TOOL = 'plugins: [{use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"}]'
GOOD = "memory: {manager_class: powercontext, backend_config: {}}\n" + TOOL
MEMORY_TEXT = "canary of the memory"

Diagnose = Callable[..., tuple[int, str]]


def healthy(request: Any) -> Reply:
    """Answer like a PowerContext 1.4.1."""
    answers: dict[str, Any] = {
        "/health/ready": {"status": "ready"},
        "/v1/server-info": {"product": "powercontext", "package_version": "1.4.1", "api_contract_version": {"major": 1, "minor": 4}},
        f"/v1/scopes/{SCOPE}": {"scope_id": SCOPE},
        f"/v1/scopes/{SCOPE}/artifacts/atomic-memory/search": {"results": []},
        "/v1/capabilities": {"search_modes": ["auto", "fts"], "memory_extraction": False},
        "/v1/stats": {"inventory": {"sources": {"total": 0, "memory_processed": 0, "memory_pending": 0}}},
        "/v1/context/prepare": {"schema": "powercontext.prepared-context.v1", "status": "ready", "content": MEMORY_TEXT, "content_bytes": len(MEMORY_TEXT)},
    }
    return answer(answers[request.path])


def healthy_but(path: str, reply: Reply) -> Callable[[Any], Reply]:
    return lambda request: reply if request.path.startswith(path) else healthy(request)


def before_1_3(request: Any) -> Reply:
    """Answer like a PowerContext 1.2.0, which knows neither question."""
    unknown = request.path == "/v1/server-info" or request.path.startswith(f"/v1/scopes/{SCOPE}/artifacts")
    return answer({"detail": "Not Found"}, 404) if unknown else healthy(request)


@pytest.fixture
def diagnose(powercontext_environment: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Diagnose:
    """Return a function that runs the doctor and returns its exit code and what it printed."""
    monkeypatch.delenv("DEER_FLOW_AUTH_DISABLED", raising=False)

    def run(base_url: str, *options: str, config: str = GOOD, **changes: str | None) -> tuple[int, str]:
        (tmp_path / "config.yaml").write_text(config)
        powercontext_environment(base_url=base_url, **changes)
        code = main(["--config", str(tmp_path / "config.yaml"), *options])
        printed = capsys.readouterr()
        output = printed.out + printed.err
        for private in (OWNER, SCOPE, TOKEN, MEMORY_TEXT, "canary", "Server text"):
            assert private not in output
        return code, output

    return run


def test_a_good_set_up_on_a_real_server_is_ok(diagnose: Diagnose, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("doctor")
    code, output = diagnose(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    for line in ("ok       settings", "ok       memory", "ok       tool", "ok       server      ready", "ok       version     1.4.1", "ok       binding", "ok       query       focused: search", "ok       recall"):
        assert line in output
    assert ("failed" in output, code) == ((False, 0) if host_forwards_query() else (True, 1))


def test_findings_can_be_had_as_json(diagnose: Diagnose, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.decide(None, healthy)
    code, output = diagnose(server.base_url, "--json")
    findings = json.loads(output)
    assert {"status": "ok", "what": "version", "detail": "1.4.1 (1.3 or later)"} in findings
    assert code == (1 if any(finding["status"] == "failed" for finding in findings) else 0)


KEPT_BACK = "warning  query       recalls cannot search first, so they find less: this server knows the search, but something on the way answers it "
BROKEN: dict[str, tuple[Callable[[Any], Reply], dict[str, Any], str]] = {
    "wrong token": (healthy_but("/v1", error(401, "unauthorized")), {}, "failed   server      PowerContext refuses the token: check POWERCONTEXT_DEERFLOW_TOKEN"),
    "token without rights": (healthy_but("/v1/scopes", error(403, "forbidden")), {}, "failed   server      PowerContext refuses the token"),
    "no such Scope": (healthy_but("/v1/scopes", error(404, "scope_not_found")), {}, "failed   server      PowerContext has no such Scope: check POWERCONTEXT_DEERFLOW_SCOPE_ID"),
    "starting up": (healthy_but("/health", answer({"status": "not_ready"}, 503)), {}, "failed   server      PowerContext is not ready: wait"),
    "degraded": (healthy_but("/health", answer({"status": "degraded"})), {}, "warning  server      degraded"),
    "an old server": (healthy_but("/v1/server-info", answer({"detail": "Not Found"}, 404)), {}, "ok       version     before 1.3"),
    "another product": (healthy_but("/", answer({"detail": "Not Found"}, 404)), {}, "failed   server      this server does not know PowerContext's API"),
    "a web page": (healthy_but("/", answer("canary")), {}, "failed   server      something else than PowerContext answers"),
    "whole requests": (healthy, {"recall_query": "full"}, "warning  query       a whole request finds little, on servers that search vectors, too; remove POWERCONTEXT_DEERFLOW_RECALL_QUERY"),
    "no search": (before_1_3, {}, "ok       query       focused, in one request"),
    "a search that a proxy keeps back": (healthy_but(f"/v1/scopes/{SCOPE}/artifacts", answer("<html>", 404)), {}, KEPT_BACK + "(the server answered 404): let the proxy on the way pass POST"),
    "a search that a proxy forbids": (healthy_but(f"/v1/scopes/{SCOPE}/artifacts", answer("<html>", 405)), {}, KEPT_BACK + "(the server answered 405)"),
    "a refused search": (healthy_but(f"/v1/scopes/{SCOPE}/artifacts", error(403, "forbidden")), {}, "warning  query       recalls cannot search first, so they find less: PowerContext refuses the token"),
    "a failing recall": (healthy_but("/v1/context", error(500, "internal_error")), {}, "failed   server      PowerContext fails inside (the server answered 500)"),
    "a remote http URL": (healthy, {"base_url": "http://powercontext.example.com"}, "failed   settings    POWERCONTEXT_DEERFLOW_BASE_URL is plain http:// to what is not surely this machine; it must be https://"),
    "a padded owner": (healthy, {"owner_user_id": " u-1"}, "failed   settings    POWERCONTEXT_DEERFLOW_OWNER_USER_ID has a space or a line end in it; it must be the id of a signed-in"),
    "the fallback owner": (healthy, {"owner_user_id": "default"}, "failed   settings    POWERCONTEXT_DEERFLOW_OWNER_USER_ID must be the id of a signed-in"),
    "no Scope": (healthy, {"scope_id": None}, "failed   settings    POWERCONTEXT_DEERFLOW_SCOPE_ID is not set"),
    "a misspelt variable": (healthy, {"max_byte": "1"}, "failed   settings    POWERCONTEXT_DEERFLOW_MAX_BYTE is not a setting"),
    "a tiny budget": (healthy, {"max_bytes": "600"}, "warning  settings    POWERCONTEXT_DEERFLOW_MAX_BYTES is below 1000"),
    "another backend": (healthy, {"config": "memory: {manager_class: deermem}\n" + TOOL}, "failed   memory      another backend is configured"),
    "no memory section": (healthy, {"config": TOOL}, "failed   memory      memory is not in config.yaml: add memory: {manager_class: powercontext, mode: "),
    "memory off": (healthy, {"config": "memory: {manager_class: powercontext, enabled: false}\n" + TOOL}, "failed   memory      there is no recall"),
    "injection off": (healthy, {"config": "memory: {manager_class: powercontext, injection_enabled: false}\n" + TOOL}, "failed   memory      there is no recall"),
    "tool mode": (healthy, {"config": "memory: {manager_class: powercontext, mode: tool}"}, "ok       tool        DeerFlow's own memory_search, memory_add, memory_update, memory_delete"),
    "tool mode and the plugin": (healthy, {"config": "memory: {manager_class: powercontext, mode: tool}\n" + TOOL}, "warning  tool        the plugin and mode tool give the model two ways to save"),
    "no such mode": (healthy, {"config": "memory: {manager_class: powercontext, mode: tools}\n" + TOOL}, "failed   memory      there is no such mode, so DeerFlow does not start"),
    "tool mode and capture": (healthy, {"config": "memory: {manager_class: powercontext, mode: tool}", "capture": "user"}, "warning  capture     in mode tool DeerFlow hands over no conversation"),
    "the binding in YAML": (healthy, {"config": "memory: {manager_class: powercontext, backend_config: {scope_id: canary}}\n" + TOOL}, "failed   memory      memory.backend_config.scope_id is not read from YAML"),
    "no tool": (healthy, {"config": "memory: {manager_class: powercontext}"}, "warning  tool        nothing can be saved from a chat; add to plugins"),
    "the tool twice": (healthy, {"config": GOOD.replace("}]", ", enabled: false}, {use: 'deerflow.agents.memory.backends.powercontext.remember_tool:install'}]")}, "ok       tool"),
    "the tool disabled": (healthy, {"config": GOOD.replace("}]", ", enabled: false}]")}, "warning  tool        nothing can be saved from a chat: the plugin is there but disabled"),
    "settings of the tool": (healthy, {"config": GOOD.replace("}]", ", config: {token: canary}}]")}, "failed   tool        the plugin refuses settings in YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_set_up_is_named_with_its_remedy(name: str, diagnose: Diagnose, powercontext_http: StartHTTP) -> None:
    choose, changes, line = BROKEN[name]
    server = powercontext_http()
    server.decide(None, choose)
    code, output = diagnose(**({"base_url": server.base_url} | changes))
    assert line in output
    assert code == (1 if "failed" in output else 0)
    if line.startswith("failed"):
        assert code == 1


def test_a_deployment_without_sign_in_fails(diagnose: Diagnose, powercontext_http: StartHTTP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEER_FLOW_AUTH_DISABLED", "1")
    server = powercontext_http()
    server.decide(None, healthy)
    code, output = diagnose(server.base_url)
    assert "failed   sign-in     DEER_FLOW_AUTH_DISABLED=1" in output
    assert code == 1
    monkeypatch.setenv("DEER_FLOW_ENV", "Production")  # where DeerFlow ignores the other
    assert "sign-in" not in diagnose(server.base_url)[1]


@pytest.mark.parametrize("name", ["refused", "black-holed connect", "hung name look-up", "stalled TLS handshake", "silent", "garbage", "64 MiB body"])
def test_a_server_that_cannot_be_reached_is_named(name: str, diagnose: Diagnose) -> None:
    with FAULTS[name]() as base_url:
        code, output = diagnose(base_url, recall_timeout_seconds="0.5")
    assert "failed   server " in output
    assert any(remedy in output for remedy in ("POWERCONTEXT_DEERFLOW_BASE_URL", "check the port", "check the name servers"))
    assert code == 1


def test_it_writes_nothing_to_the_server(diagnose: Diagnose, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.decide(None, healthy)
    diagnose(server.base_url)
    assert [(request.method, request.path.split("/scp_")[0]) for request in server.requests] == [
        ("GET", "/health/ready"),
        ("GET", "/v1/server-info"),
        ("GET", "/v1/scopes"),
        ("GET", "/v1/scopes"),  # without the token: does the server check it?
        ("POST", "/v1/scopes"),  # a search
        ("POST", "/v1/context/prepare"),
    ]


@pytest.mark.parametrize("content", [None, "memory: [", "- a list", "\x00", "day: 2024-99-99", "token: !!int secret", "[" * 3000, "{" * 3000])
def test_without_a_readable_configuration_it_cannot_run(content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_text(content)
    assert main(["--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert "another with --config (make doctor: CONFIG=)" in error
    assert "secret" not in error


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(GOOD)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POWERCONTEXT_")} | {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "deerflow.agents.memory.backends.powercontext.doctor", "--config", str(tmp_path / "config.yaml")]
    doctor = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert doctor.returncode == 1
    assert "failed   settings    POWERCONTEXT_DEERFLOW_BASE_URL is not set" in doctor.stdout
