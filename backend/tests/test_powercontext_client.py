"""The client against replies recorded from real servers, and the way to a server: TLS, proxies, headers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import READY, SCOPE, Configure, StartBytes, StartHTTP, binding
from powercontext_support.real_server import RealServer
from powercontext_support.replies import READINESS, REQUEST_ID, answer, captured, prepared

from deerflow.agents.memory.backends.powercontext.api.client import PowerContextClient
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import (
    PowerContextAuthenticationError,
    PowerContextConfigurationError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextTimeoutError,
    PowerContextUnavailableError,
)
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings

pytest_plugins = ("powercontext_support.fixtures",)

LIMIT = 2.0


@pytest.fixture
def client_of(powercontext_environment: Configure) -> Iterator[Any]:
    clients: list[PowerContextClient] = []

    def connect(base_url: str, **changes: str | None) -> PowerContextClient:
        powercontext_environment(base_url=base_url, **changes)
        clients.append(PowerContextClient(load_settings()))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.mark.parametrize("version", ["1.4.1", "1.2.0"])
def test_recorded_contexts_come_through_unchanged(version: str, client_of: Any, powercontext_http: StartHTTP) -> None:
    reply = captured(version, "prepare_context_ready")
    client = client_of(powercontext_http(reply).base_url)
    context = client.prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT))
    assert context == json.loads(reply.body)["content"]
    assert "refund and money amounts are integer cents" in context


@pytest.mark.parametrize("version", ["1.4.1", "1.2.0"])
def test_recorded_empty_contexts_are_no_text(version: str, client_of: Any, powercontext_http: StartHTTP) -> None:
    client = client_of(powercontext_http(captured(version, "prepare_context_empty")).base_url)
    assert client.prepare_context(binding(), "zebra", deadline=Deadline.after(LIMIT)) == ""


@pytest.mark.parametrize(("version", "package_version"), [("1.4.1", "1.4.1"), ("1.2.0", None)])
def test_a_server_before_1_3_has_no_server_info_and_that_is_an_answer(version: str, package_version: str | None, client_of: Any, powercontext_http: StartHTTP) -> None:
    status = 200 if package_version else 404
    client = client_of(powercontext_http(captured(version, "get_server_info", status)).base_url)
    info = client.get_server_info(binding(), deadline=Deadline.after(LIMIT))
    assert (info and info.package_version) == package_version


@pytest.mark.parametrize("version", ["1.4.1", "1.2.0"])
def test_recorded_readiness_and_scope_are_understood(version: str, client_of: Any, powercontext_http: StartHTTP) -> None:
    scope = captured(version, "get_scope")
    scope_id = json.loads(scope.body)["scope_id"]
    server = powercontext_http()
    server.answer(READINESS, captured(version, "get_readiness"))
    server.answer(f"/v1/scopes/{scope_id}", scope)
    client = client_of(server.base_url, scope_id=scope_id)
    assert client.get_readiness(deadline=Deadline.after(LIMIT)).status == "ready"
    assert client.get_scope(binding(), deadline=Deadline.after(LIMIT)).scope_id == scope_id


def test_a_server_that_is_not_ready_says_so_with_503(client_of: Any, powercontext_http: StartHTTP) -> None:
    client = client_of(powercontext_http(answer({"status": "not_ready", "checks": {"database": "x"}}, 503)).base_url)
    assert client.get_readiness(deadline=Deadline.after(LIMIT)).status == "not_ready"


def test_a_real_server_answers_every_operation(client_of: Any, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("operations")
    client = client_of(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    assert client.get_readiness(deadline=Deadline.after(LIMIT)).status == "ready"
    assert client.get_server_info(binding(), deadline=Deadline.after(LIMIT)).product == "powercontext"
    assert client.get_scope(binding(), deadline=Deadline.after(LIMIT)).scope_id == scope
    assert client.prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT)) == ""


def test_a_real_server_accepts_8192_characters(client_of: Any, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("long")
    client = client_of(powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    assert client.prepare_context(binding(), "测" * 9000, deadline=Deadline.after(60)) == ""


@pytest.mark.parametrize(
    ("changes", "error", "status_code", "code"),
    [
        ({"token": "wrong"}, PowerContextAuthenticationError, 401, "unauthorized"),
        ({"scope_id": "scp_nobody"}, PowerContextScopeNotFoundError, 404, "scope_not_found"),
    ],
)
def test_a_real_server_refuses_with_a_class_of_its_own(
    changes: dict[str, str],
    error: type[PowerContextStatusError],
    status_code: int,
    code: str,
    client_of: Any,
    powercontext_server: RealServer,
) -> None:
    client = client_of(powercontext_server.base_url, **({"scope_id": "scp_x", "token": powercontext_server.token} | changes))
    with pytest.raises(error) as caught:
        client.prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT))
    assert (caught.value.status_code, caught.value.code, len(caught.value.request_id or "")) == (status_code, code, 16)


@pytest.mark.parametrize(
    ("status", "body", "error", "code"),
    [
        (
            401,
            {"error": {"code": "unauthorized", "message": "x", "details": None}},
            PowerContextAuthenticationError,
            "unauthorized",
        ),
        (
            403,
            {"error": {"code": "forbidden", "message": "x", "details": None}},
            PowerContextAuthenticationError,
            "forbidden",
        ),
        (404, {"detail": "Not Found"}, PowerContextStatusError, None),
        (
            503,
            {"error": {"code": "server_overloaded", "message": "x", "details": None}},
            PowerContextUnavailableError,
            "server_overloaded",
        ),
        (500, {"error": {"code": "server text", "message": "x", "details": None}}, PowerContextStatusError, None),
        (204, {}, PowerContextStatusError, None),
        (307, {}, PowerContextStatusError, None),
    ],
)
def test_each_status_has_its_class_and_only_known_codes_are_repeated(
    status: int,
    body: object,
    error: type[PowerContextStatusError],
    code: str | None,
    client_of: Any,
    powercontext_http: StartHTTP,
) -> None:
    client = client_of(powercontext_http(answer(body, status)).base_url)
    with pytest.raises(PowerContextStatusError) as caught:
        client.prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT))
    assert (type(caught.value), caught.value.code, caught.value.request_id) == (error, code, REQUEST_ID)
    assert str(caught.value).startswith(f"the server answered {status}")
    assert caught.value.may_have_been_sent is True


def test_errors_know_whether_the_request_may_have_been_sent(client_of: Any, powercontext_bytes: StartBytes) -> None:
    def sent_by(base_url: str) -> tuple[type[PowerContextError], bool]:
        with pytest.raises(PowerContextError) as caught:
            client_of(base_url).prepare_context(binding(), "refund", deadline=Deadline.after(0.3))
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        return type(caught.value), caught.value.may_have_been_sent

    silent = powercontext_bytes(lambda request, peer: peer.hang())
    closing = powercontext_bytes(lambda request, peer: None)
    assert sent_by(silent.base_url) == (PowerContextTimeoutError, True)
    assert sent_by(closing.base_url) == (PowerContextResponseError, True)
    assert sent_by("http://127.0.0.1:9") == (PowerContextConnectionError, False)


def test_a_reply_about_another_scope_is_no_proof(client_of: Any, powercontext_http: StartHTTP) -> None:
    client = client_of(powercontext_http(answer({"scope_id": "scp_other"})).base_url)
    with pytest.raises(PowerContextResponseError, match="another Scope"):
        client.get_scope(binding(), deadline=Deadline.after(LIMIT))


def test_a_scope_id_cannot_leave_its_path_segment(client_of: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer({"scope_id": "../admin?x=1#y/范"}))
    client_of(server.base_url, scope_id="../admin?x=1#y/范").get_scope(binding(), deadline=Deadline.after(LIMIT))
    assert server.requests[0].environ["RAW_URI"] == "/v1/scopes/..%2Fadmin%3Fx%3D1%23y%2F%E8%8C%83"


def test_without_a_token_no_authorization_is_sent(client_of: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    client_of(server.base_url, token=None).prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT))
    assert "authorization" not in server.requests[0].headers
    assert server.requests[0].headers["Host"] == f"127.0.0.1:{server.port}"


def test_a_private_ca_is_honoured(client_of: Any, powercontext_http: StartHTTP, powercontext_ca: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = powercontext_http(answer(prepared("text")), tls=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(powercontext_ca))
    assert client_of(server.base_url).prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT)) == "text"


def test_an_unknown_ca_is_a_connection_error_that_speaks_of_tls(client_of: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(answer(prepared("text")), tls=True)
    with pytest.raises(PowerContextConnectionError, match="certificate") as caught:
        client_of(server.base_url).prepare_context(binding(), "refund", deadline=Deadline.after(LIMIT))
    assert server.requests == []
    assert caught.value.may_have_been_sent is False


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_a_configuration_error(content: str | None, client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(PowerContextConfigurationError, match=r"\n- SSL_CERT_FILE does not name certificates") as caught:
        client_of("https://powercontext.example.com")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_certificate_folder_that_is_none_is_a_configuration_error(name: str, client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / name))
    with pytest.raises(PowerContextConfigurationError, match=r"\n- SSL_CERT_DIR does not name certificates"):
        client_of("https://powercontext.example.com")


def test_the_configured_scope_is_the_one_in_every_request(client_of: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http(READY)
    client_of(server.base_url).prepare_context(binding(), "scope_id: scp_other", deadline=Deadline.after(LIMIT))
    assert server.requests[0].json["scope_id"] == SCOPE
