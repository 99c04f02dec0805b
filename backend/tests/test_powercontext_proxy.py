"""The environment's proxies: never for this machine, honoured for https, and refused in words when they cannot be used."""

from __future__ import annotations

import time
from typing import Any

import pytest
from powercontext_support import OWNER, READY, BuildManager, Configure, StartBytes, StartHTTP, binding
from powercontext_support.byte_server import Peer, Request, always
from powercontext_support.replies import PREPARE, Reply

from deerflow.agents.memory.backends.powercontext.api.client import PowerContextClient
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import (
    PowerContextConfigurationError,
    PowerContextConnectionError,
    PowerContextTimeoutError,
)
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings

pytest_plugins = ("powercontext_support.fixtures",)

REMOTE = "https://powercontext.example.com"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"])
def test_this_machine_is_never_reached_through_a_proxy(
    variable: str,
    powercontext_manager: BuildManager,
    powercontext_http: StartHTTP,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, proxy = powercontext_http(READY), powercontext_http(READY)
    monkeypatch.setenv(variable, proxy.base_url)
    assert powercontext_manager(server.base_url).get_context(OWNER, query="refund") != ""
    assert (len(server.requests_to(PREPARE)), proxy.requests) == (1, [])


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY", "https_proxy"])
def test_another_machine_is_reached_through_the_proxy(
    variable: str,
    powercontext_environment: Configure,
    powercontext_bytes: StartBytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = powercontext_bytes(always(Reply(407)))
    monkeypatch.setenv(variable, proxy.base_url.replace("http://", "http://user:pass@"))
    powercontext_environment(base_url=REMOTE)
    client = PowerContextClient(load_settings())
    with pytest.raises(PowerContextConnectionError, match="the proxy wants a user name and a password") as caught:
        client.prepare_context(binding(), "refund", deadline=Deadline.after(2.0))
    client.close()
    [request] = proxy.requests
    assert (request.method, request.path) == ("CONNECT", "powercontext.example.com:443")
    assert request.headers["proxy-authorization"] == "Basic dXNlcjpwYXNz"
    assert "authorization" not in request.headers
    assert caught.value.may_have_been_sent is False


def test_a_proxy_that_never_answers_ends_within_the_limit_and_nothing_was_sent(powercontext_environment: Configure, powercontext_bytes: StartBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(request: Request, peer: Peer) -> None:
        peer.hang()

    monkeypatch.setenv("HTTPS_PROXY", powercontext_bytes(silent).base_url)
    powercontext_environment(base_url=REMOTE)
    client = PowerContextClient(load_settings())
    started = time.monotonic()
    with pytest.raises(PowerContextTimeoutError) as caught:
        client.prepare_context(binding(), "refund", deadline=Deadline.after(0.5))
    assert time.monotonic() - started < 5
    assert caught.value.may_have_been_sent is False
    client.close()


def test_a_tunnel_whose_handshake_fails_does_not_block_the_next_recall(powercontext_manager: BuildManager, powercontext_bytes: StartBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_and_hang_up(request: Request, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")

    proxy = powercontext_bytes(open_and_hang_up)
    monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
    manager = powercontext_manager(REMOTE, recall_timeout_seconds="4.0")
    started = time.monotonic()
    assert [manager.get_context(OWNER, query="refund") for _ in range(3)] == ["", "", ""]
    assert time.monotonic() - started < 3.5  # one that waits takes its 4 s
    assert len(proxy.requests) == 6  # a search and, when it failed, a prepare each


@pytest.mark.parametrize("no_proxy", ["powercontext.example.com:443", "other, *", "https://powercontext.example.com", "powercontext.example.com", "example.com", ".example.com", "*", "localhost,powercontext.example.com"])
def test_no_proxy_is_honoured(no_proxy: str, powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    powercontext_environment(base_url=REMOTE)
    assert load_settings().endpoint.proxy is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTPS_PROXY", "http://[secret"), ("HTTPS_PROXY", "secret://proxy:1"), ("HTTPS_PROXY", "http://secret:x"), ("ALL_PROXY", "socks5://secret:1080"),
        ("HTTPS_PROXY", "https://secret:3128"),
    ],
)  # fmt: skip
def test_a_proxy_that_cannot_be_used_is_a_configuration_error(variable: str, value: str, powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    powercontext_environment(base_url=REMOTE)
    with pytest.raises(PowerContextConfigurationError, match="_PROXY") as caught:
        load_settings()
    assert "secret" not in str(caught.value)
    chained: Any = (caught.value.__cause__, caught.value.__context__)
    assert chained == (None, None)


def test_a_wrong_proxy_does_not_matter_to_this_machine(powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("NO_PROXY", "[::1]")
    powercontext_environment()
    assert load_settings().endpoint.proxy is None


@pytest.mark.parametrize("no_proxy", ["[::1]", "fe80::/10", "localhost,[::secret]", "https://[x", "10.0.0.0/8"])
def test_an_entry_of_no_proxy_that_is_no_address_concerns_other_requests(no_proxy: str, powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", no_proxy)
    powercontext_environment(base_url=REMOTE)
    assert load_settings().endpoint.proxy is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    powercontext_environment(base_url=REMOTE)
    proxy = load_settings().endpoint.proxy
    assert proxy is not None
    assert str(proxy.url) == "http://proxy.example.com:3128"


def test_a_proxy_for_plain_http_does_not_matter_to_https(powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://[broken")
    powercontext_environment(base_url=REMOTE)
    assert load_settings().endpoint.proxy is None
