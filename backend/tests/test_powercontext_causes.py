"""One cause, one remedy: what the doctor says where something other than a healthy PowerContext answers."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, BuildManager, Configure, StartBytes, StartHTTP
from powercontext_support.byte_server import Peer, Request
from powercontext_support.faults import hung_name_lookup
from powercontext_support.real_server import RealServer
from powercontext_support.replies import READINESS, Reply, answer, error

from deerflow.agents.memory.backends.powercontext.doctor.server_checks import check_service
from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings

pytest_plugins = ("powercontext_support.fixtures",)

Ask = Callable[..., str]


@pytest.fixture
def ask(powercontext_environment: Configure) -> Ask:
    """Return a function that asks a server as the doctor does, and gives the one failed line."""

    def failed_line(base_url: str, **settings: str | None) -> str:
        powercontext_environment(**({"base_url": base_url, "recall_timeout_seconds": "4"} | settings))
        [line] = [finding.detail for finding in check_service(load_settings()) if finding.status == "failed"]
        return line

    return failed_line


@pytest.mark.parametrize(
    ("opening", "line"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "PowerContext does not answer: an SSH server answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL"),
        (b"-ERR wrong number of arguments for 'get' command\r\n", "PowerContext does not answer: a Redis server, or one like it, answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL"),
        (b"220 mail.example.com ESMTP\r\n", "PowerContext does not answer: a mail or FTP server answers there: check the port in POWERCONTEXT_DEERFLOW_BASE_URL"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "PowerContext does not answer: an https port answers there: POWERCONTEXT_DEERFLOW_BASE_URL has to begin with https://"),
        (b"GARBAGE\r\n\r\n", "PowerContext does not answer: what answers there speaks no HTTP: check the port in POWERCONTEXT_DEERFLOW_BASE_URL"),
    ],
)
def test_a_port_where_something_else_speaks_is_named(opening: bytes, line: str, ask: Ask, powercontext_bytes: StartBytes) -> None:
    def speak(request: Request, peer: Peer) -> None:
        peer.send(opening)

    assert ask(powercontext_bytes(speak).base_url) == line


def test_a_name_without_an_address_is_told(ask: Ask) -> None:
    too_long_to_be_asked_for = f"https://{'a' * 64}.example.com"
    assert ask(too_long_to_be_asked_for) == ("PowerContext cannot be reached: the server's name has no address: check the host in POWERCONTEXT_DEERFLOW_BASE_URL, and the name servers of this machine")


SLOW_LOOK_UP = "the look-up of the server's name took too long: check the name servers of this machine"


def test_a_name_look_up_that_takes_too_long_is_told_by_the_doctor_and_in_the_log(ask: Ask, powercontext_manager: BuildManager, caplog: pytest.LogCaptureFixture) -> None:
    with hung_name_lookup() as base_url:
        assert ask(base_url, recall_timeout_seconds="0.5") == f"PowerContext does not answer: {SLOW_LOOK_UP}"
        assert powercontext_manager(base_url, recall_timeout_seconds="0.5").get_context(OWNER, query="Refunds at the checkout") == ""
    assert f", {SLOW_LOOK_UP}, " in caplog.text


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (Reply(200, b"<html>sign in"), "something else than PowerContext answers (the reply is not what PowerContext's contract says): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way"),
        (
            Reply(302, b"", {"Location": "https://login.example.com/secret"}),
            "something else than PowerContext answers (the server answered 302 and leads to another host): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way",
        ),
        (
            Reply(307, b"", {"Location": "/login"}),
            "something else than PowerContext answers (the server answered 307 and leads to another path or port of this host): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way",
        ),
        (
            Reply(301, b"", {"Location": "https://127.0.0.1/v1"}),
            "something else than PowerContext answers (the server answered 301 and leads to this host by https): POWERCONTEXT_DEERFLOW_BASE_URL has to begin with https://, and have the port for that",
        ),
        (Reply(429, b"slow down"), "a proxy on the way limits the requests (the server answered 429): raise its limit for this Gateway"),
        (
            Reply(400, b"The plain HTTP request was sent to HTTPS port"),
            "something else than PowerContext answers (the server answered 400): check the port in POWERCONTEXT_DEERFLOW_BASE_URL, and whether it has to begin with https://",
        ),
        (
            Reply(404, b"not here"),
            "this server does not know PowerContext's API: it is older than 1.2, or POWERCONTEXT_DEERFLOW_BASE_URL leads elsewhere, for example by a path such as /v1",
        ),
        (error(500, "internal_error"), "PowerContext fails inside (the server answered 500): look into its log"),
        (Reply(502, b"<html>"), "a proxy on the way does not reach PowerContext (the server answered 502): check that it runs, and the proxy's log"),
        (Reply(503, b"<html>"), "a proxy on the way does not reach PowerContext (the server answered 503): check that it runs, and the proxy's log"),
        (error(503, "server_overloaded"), "PowerContext is not ready (the server answered 503): wait for its start-up, or look into its log"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else "",
)
def test_a_status_is_told_by_who_can_have_sent_it(reply: Reply, line: str, ask: Ask, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(None, reply)
    assert ask(server.base_url) == line


def test_a_port_that_closes_without_a_word_may_be_an_https_port(ask: Ask, powercontext_bytes: StartBytes) -> None:
    def close(request: Request, peer: Peer) -> None:
        pass

    line = ask(powercontext_bytes(close).base_url)
    assert line.startswith("PowerContext does not answer (the connection broke before a complete reply): check the port in POWERCONTEXT_DEERFLOW_BASE_URL, and whether it is an https port")


@pytest.mark.parametrize("path", ["/v1", "/powercontext"])
def test_a_path_that_is_not_powercontexts_is_not_the_tokens_fault(path: str, ask: Ask, powercontext_server: RealServer) -> None:
    line = ask(powercontext_server.base_url + path, token=powercontext_server.token)
    assert line == "PowerContext has nothing at this path: remove the path, such as /v1, from POWERCONTEXT_DEERFLOW_BASE_URL, or let the proxy take it off"


def test_a_proxy_that_passes_only_some_questions_is_named(ask: Ask, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.decide(None, lambda request: answer({"status": "ready"}) if request.path == READINESS else Reply(405, b"<html>"))
    assert ask(server.base_url).startswith("something else than PowerContext answers a part of the questions (the server answered 405): let the proxy on the way pass GET and POST to every path")


def test_a_server_that_never_answers_is_slow_and_not_wrong(ask: Ask, powercontext_bytes: StartBytes) -> None:
    def wait(request: Request, peer: Peer) -> None:
        peer.hang()

    line = ask(powercontext_bytes(wait).base_url, recall_timeout_seconds="0.5")
    assert line.startswith("PowerContext does not answer in time (no complete reply within the limit): look into its log and its machine's load, and check the port")


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Any], None]:
    """Return a function that makes a certificate authority the only one that is trusted."""

    def only(authority: Any) -> None:
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    return only


@pytest.fixture
def tls_server() -> Iterator[Callable[[Any], str]]:
    """Return a function that starts an https server with a certificate, and gives its URL."""
    httpserver = pytest.importorskip("pytest_httpserver")
    started: list[Any] = []

    def start(certificate: Any) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        started.append(httpserver.HTTPServer(host="127.0.0.1", ssl_context=context, threaded=True))
        started[-1].start()
        return f"https://127.0.0.1:{started[-1].port}"

    yield start
    for server in started:
        server.stop()


def test_an_expired_certificate_is_named(ask: Ask, trust: Callable[[Any], None], tls_server: Callable[[Any], str]) -> None:
    authority = pytest.importorskip("trustme").CA()
    trust(authority)
    url = tls_server(authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) - timedelta(days=1), not_before=datetime.now(UTC) - timedelta(days=2)))
    assert ask(url) == "PowerContext cannot be reached: the server's certificate has expired: renew it"


def test_a_certificate_for_another_address_is_named(ask: Ask, trust: Callable[[Any], None], tls_server: Callable[[Any], str]) -> None:
    authority = pytest.importorskip("trustme").CA()
    trust(authority)
    url = tls_server(authority.issue_cert("powercontext.example.com"))
    assert ask(url) == "PowerContext cannot be reached: the server's certificate is for another address: use its name in POWERCONTEXT_DEERFLOW_BASE_URL, or a certificate for this address"


def test_a_certificate_of_an_unknown_authority_is_named(ask: Ask, trust: Callable[[Any], None], tls_server: Callable[[Any], str]) -> None:
    trustme = pytest.importorskip("trustme")
    trust(trustme.CA())
    url = tls_server(trustme.CA().issue_cert("127.0.0.1"))
    line = ask(url)
    assert line.startswith("PowerContext cannot be reached: the server's certificate is from an authority that is not trusted: put it and the public authorities into one file")
    assert line.endswith('name that in SSL_CERT_FILE: cat "$(backend/.venv/bin/python -m certifi)" ca.pem > bundle.pem')


def test_https_to_an_http_port_is_named(ask: Ask, powercontext_http: StartHTTP) -> None:
    url = powercontext_http().base_url.replace("http://", "https://")
    assert ask(url).startswith("PowerContext cannot be reached: what answers there speaks no TLS: is this an http port?")


def test_a_proxy_that_wants_a_password_is_named(ask: Ask, powercontext_bytes: StartBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: Request, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    monkeypatch.setenv("HTTPS_PROXY", powercontext_bytes(refuse).base_url)
    assert ask("https://powercontext.example.com") == "PowerContext cannot be reached: the proxy wants a user name and a password: put them into HTTPS_PROXY or ALL_PROXY, as in http://user:password@proxy:3128"


PROXY = "check HTTPS_PROXY or ALL_PROXY, or list the server's host in NO_PROXY"


@pytest.mark.parametrize(
    ("opening", "line"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", f"the proxy refuses the connection: {PROXY}, or see the proxy's log"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", f"what answers at the proxy's address is no http proxy: {PROXY}"),
        (b"", f"what answers at the proxy's address is no http proxy: {PROXY}"),
    ],
)
def test_what_is_wrong_with_a_proxy_is_not_the_servers_fault(opening: bytes, line: str, ask: Ask, powercontext_bytes: StartBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", powercontext_bytes(lambda request, peer: peer.send(opening)).base_url)
    assert ask("https://powercontext.example.com") == f"PowerContext cannot be reached: {line}"


def test_a_proxy_that_is_not_there_is_named(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert ask("https://powercontext.example.com") == f"PowerContext cannot be reached: nothing answers at the proxy's address: {PROXY}"


def test_a_key_log_that_cannot_be_written_is_named(powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "none" / "keys"))
    powercontext_environment(base_url="https://powercontext.example.com")
    with pytest.raises(PowerContextConfigurationError, match="SSLKEYLOGFILE does not name a file that can be written"):
        load_settings()
