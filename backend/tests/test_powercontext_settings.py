"""The settings: what is accepted, what is refused and in which words, and that nothing of them leaks."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, Configure

from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError
from deerflow.agents.memory.backends.powercontext.settings.loading import (
    PowerContextSettings,
    load_settings,
)
from deerflow.agents.memory.backends.powercontext.settings.yaml_config import parse_backend_config

pytest_plugins = ("powercontext_support.fixtures",)

REMOTE = "https://powercontext.example.com"


def test_the_defaults_are_those_of_the_design(powercontext_environment: Configure) -> None:
    settings = load_settings()
    assert (settings.max_bytes, settings.recall_query) == (8000, "focused")
    assert (settings.recall_timeout_seconds, settings.remember_timeout_seconds) == (2.0, 5.0)
    assert (settings.capture, settings.capture_max_entries, settings.capture_max_bytes, settings.capture_max_days) == ("off", 10_000, 64_000_000, 30)
    assert settings.endpoint.proxy is None


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://localhost:8000"}, {"base_url": "http://LOCALHOST"}, {"base_url": "http://127.8.9.1:80/prefix/"}, {"base_url": "http://[::1]:8000"},
        {"base_url": REMOTE}, {"base_url": "https://xn--n3h.net"}, {"base_url": f"{REMOTE}:8443/memory"}, {"token": None}, {"token": "a$b'c@d"}, {"scope_id": "x" * 256}, {"scope_id": "范围"}, {"scope_id": "a@b#c"},
        {"owner_user_id": "user.name"}, {"owner_user_id": "e\u0301x"}, {"max_bytes": "512"}, {"max_bytes": "32768"}, {"recall_timeout_seconds": "4"},
        {"recall_timeout_seconds": "0.001"}, {"remember_timeout_seconds": "600"}, {"recall_query": "focused"}, {"recall_query": "full"},
        {"capture": "off"}, {"capture": "user"}, {"capture": "turns"}, {"capture_max_entries": "1"}, {"capture_max_bytes": "1000000"}, {"capture_max_days": "365"},
    ],
    ids=str,
)  # fmt: skip
def test_good_settings_are_accepted(changes: dict[str, str | None], powercontext_environment: Configure) -> None:
    powercontext_environment(**changes)
    assert len(load_settings().people.bindings) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("base_url", url) for url in (
            None, "", "localhost:8000", "powercontext", "/v1", "ftp://127.0.0.1", "https://", "https:///path", "http://powercontext.example.com", "http://0.0.0.0",
            "http://localhost.", "http://sub.localhost", "http://[::ffff:127.0.0.1]", "http://127.1", "http://127.0.0.1.example.com", "https://user@example.com",
            "https://user:pw@example.com", "https://example.com?x=1", "https://example.com#x", "https://example.com/?", " https://example.com", "https://example.com ",
            "https://exa mple.com", "https://example.com\n", "https://example.com:99999", "https://example.com:0", "https://example.com:x", "https://[::1",
            "http://127.0.0.1\\@example.com", "https://\udcff.example.com", "https://example.com/\udcff", "https://[secret-host",
        )],
        *[("owner_user_id", owner) for owner in (
            None, "", " ", "default", " u-1", "u-1 ", "u-1\n", "\udcff", '"u-1"', "'u-1'", "u-1 # comment", "u-1#comment", "${OWNER}", "$OWNER", "<user id>", "<user-id>",
            "name@example.com", "\ufeffu-1", "u-1\u200b", "u\u00ad-1", "u-\u202e1", "u-1\x1b", "“u-1”", "u-1,u-2", "u 1", "u\u00a01", "{{ owner }}", "u-1\u3164", "u-1\ue000",
        )],
        *[("scope_id", scope) for scope in (
            None, "", " ", " scp", "scp\t", ".", "..", "x" * 257, "\udcff", '"scp_1"', "scp_1 # comment", "${SCOPE}", "<scope-id>", "\ufeffscp_1", "scp_1\u200b", "s p",
        )],
        *[("token", token) for token in ("", " ", "tok en", "token\n", "tök", "\ttoken", '"token"', "'token'", "${TOKEN}", "$TOKEN", "<token>", "{{token}}", "Bearer token")],
        *[("max_bytes", number) for number in ("", "511", "32769", "8000.0", "8e3", "8_000", " 8000", "+8000", "-1", "true", "x", "٨٠٠٠", "9" * 5000)],
        *[("recall_timeout_seconds", number) for number in ("", "0", "0.0", "4.1", "-1", "nan", "inf", "1e0", "2,5", "2 ", "true", "None", "1_0")],
        *[("recall_query", value) for value in ("", "Focused", "focused ", "vector", "none")],
        *[("tools", value) for value in ("", ",", "recall,", "Remember", "forgett,recall", "remember recall", "remember,remember", "remember;recall", "all", "none")],
        *[("capture", value) for value in ("", "on", "true", "1", "Turns", "user ", "none")],
        *[("capture_max_entries", number) for number in ("", "0", "1000001", "-1", "1e3")],
        *[("capture_max_bytes", number) for number in ("", "999999", "64MB", "9999999999")],
        *[("capture_max_days", number) for number in ("", "0", "366", "30d", "1.5")],
        *[("remember_timeout_seconds", number) for number in ("", "0", "-5", "nan", "inf", "Infinity", "1e309", "5s")],
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_remedy_and_not_shown(name: str, value: str | None, powercontext_environment: Configure) -> None:
    powercontext_environment(**{name: value})
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    variable = f"POWERCONTEXT_DEERFLOW_{name.upper()}"
    lines = str(caught.value).splitlines()
    assert [line for line in lines if line.startswith(f"- {variable} ")] == lines[1:]
    assert " must be " in lines[1]
    if value and len(value.strip()) > 8:
        assert value.strip() not in str(caught.value).replace("`default`", "")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "is empty"),
        ("powercontext.example.com", "does not begin with http:// or https://"),
        ("localhost:8000", "does not begin with http:// or https://"),
        ("http:/127.0.0.1:8000", "does not begin with http:// or https://"),
        ("htp://127.0.0.1:8000", "does not begin with http:// or https://"),
        ('"https://example.com"', "has quotes around it"),
        ("https://example.com\r", "has a space or a line end in it"),
        ("https://${HOST}", "has a variable or a placeholder in it that is not filled in"),
        ("https://user:pw@example.com", "has a user name in it"),
        ("https://example.com?x=1", "has a query or a fragment"),
        ("https://example.com:99999", "has no usable host and port"),
        ("https://", "has no usable host and port"),
        ("http://powercontext.example.com", "is plain http:// to what is not surely this machine"),
        ("http://0.0.0.0:8000", "is plain http:// to what is not surely this machine"),
    ],
)
def test_the_rule_that_a_url_breaks_is_named(url: str, fault: str, powercontext_environment: Configure) -> None:
    powercontext_environment(base_url=url)
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert f"POWERCONTEXT_DEERFLOW_BASE_URL {fault}; it must be https://" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("", "is empty"),
        ('"canary"', "has quotes around it"),
        ("canary'", "has quotes around it"),
        ("canary # mine", "has a comment behind it"),
        ("${CANARY}", "has a variable or a placeholder in it that is not filled in"),
        ("$(cat canary)", "has a variable or a placeholder in it that is not filled in"),
        ("<canary>", "has a variable or a placeholder in it that is not filled in"),
        ("canary\r", "has a space or a line end in it"),
        ("canary canary", "has a space or a line end in it"),
        ("\ufeffcanary", "has a sign in it that does not show"),
    ],
)
@pytest.mark.parametrize("name", ["owner_user_id", "scope_id", "token"])
def test_a_known_slip_is_named(name: str, text: str, slip: str, powercontext_environment: Configure) -> None:
    powercontext_environment(**{name: text})
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert f"POWERCONTEXT_DEERFLOW_{name.upper()} {slip}; it must be" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_an_e_mail_address_and_a_bearer_are_named(powercontext_environment: Configure) -> None:
    powercontext_environment(owner_user_id="canary@example.com", token="Bearer canary")
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert "POWERCONTEXT_DEERFLOW_OWNER_USER_ID looks like an e-mail address; it must be" in str(caught.value)
    assert "POWERCONTEXT_DEERFLOW_TOKEN begins with Bearer, which is not part of it; it must be" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("scope", "scope_id"), ("url", "base_url"), ("server_url", "base_url"), ("owner_id", "owner_user_id"), ("api_key", "token"), ("tokne", "token"), ("auth_token", "token")],
)
def test_one_slip_in_a_name_is_one_fault(given: str, meant: str, powercontext_environment: Configure) -> None:
    powercontext_environment(**{"base_url": "https://powercontext.example.com", given: "canary", meant: None})
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert str(caught.value).splitlines()[1:] == [f"- POWERCONTEXT_DEERFLOW_{given.upper()} is not a setting of this backend; did you mean POWERCONTEXT_DEERFLOW_{meant.upper()}?"]


@pytest.mark.parametrize("name", ["powercontext_deerflow_scope_id", "POWERCONTEX_DEERFLOW_SCOPE_ID", "DEERFLOW_POWERCONTEXT_SCOPE_ID", "POWERCONTEXT_DEER_FLOW_SCOPE_ID"])
def test_a_slip_in_the_prefix_is_named(name: str, powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    powercontext_environment(scope_id=None)
    monkeypatch.setenv(name, "canary")
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert str(caught.value).splitlines()[1:] == [f"- POWERCONTEXT_DEERFLOW_SCOPE_ID is not set, but {name} is: did you mean that? Rename it"]


def test_all_faults_are_named_at_once(powercontext_environment: Configure) -> None:
    powercontext_environment(
        base_url="ftp://secret-host",
        owner_user_id="default",
        scope_id=" secret-scope",
        token="secret token",
        max_bytes="1",
        recall_timeout_seconds="9",
    )
    with pytest.raises(PowerContextConfigurationError) as caught:
        load_settings()
    assert [line.split()[1].removeprefix("POWERCONTEXT_DEERFLOW_") for line in str(caught.value).splitlines()[1:]] == [
        "BASE_URL", "OWNER_USER_ID", "SCOPE_ID", "TOKEN", "MAX_BYTES", "RECALL_TIMEOUT_SECONDS",
    ]  # fmt: skip
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "tools"),
    [(None, ("remember", "recall", "correct", "forget")), ("remember", ("remember",)), ("recall, remember", ("recall", "remember")), ("forget,correct,recall,remember", ("forget", "correct", "recall", "remember"))],
)
def test_the_tools_are_named_with_commas_between_them(value: str | None, tools: tuple[str, ...], powercontext_environment: Configure) -> None:
    powercontext_environment(tools=value)
    assert load_settings().tools == tools


def test_a_token_is_required_away_from_this_machine(powercontext_environment: Configure) -> None:
    powercontext_environment(base_url=REMOTE, token=None)
    with pytest.raises(
        PowerContextConfigurationError,
        match=r"POWERCONTEXT_DEERFLOW_TOKEN is not set .*; it must be .* only if PowerContext is on this machine",
    ):
        load_settings()


def test_a_variable_nobody_knows_is_refused(powercontext_environment: Configure) -> None:
    powercontext_environment(scope="scp_typo")
    with pytest.raises(PowerContextConfigurationError, match="POWERCONTEXT_DEERFLOW_SCOPE is not a setting") as caught:
        load_settings()
    assert "scp_typo" not in str(caught.value)


def test_the_environment_is_read_once(powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_settings()
    monkeypatch.setenv("POWERCONTEXT_DEERFLOW_SCOPE_ID", "scp_other")
    assert load_settings() is first


def test_a_failure_is_remembered(powercontext_environment: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    powercontext_environment(scope_id=None)
    with pytest.raises(PowerContextConfigurationError):
        load_settings()
    monkeypatch.setenv("POWERCONTEXT_DEERFLOW_SCOPE_ID", SCOPE)
    with pytest.raises(PowerContextConfigurationError, match="SCOPE_ID"):
        load_settings()


def test_threads_share_one_snapshot(powercontext_environment: Configure) -> None:
    found: list[PowerContextSettings] = []
    threads = [threading.Thread(target=lambda: found.append(load_settings())) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(settings) for settings in found}) == 1


def test_nothing_secret_shows(powercontext_environment: Configure) -> None:
    settings = load_settings()
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()} {vars(settings)} {copy.deepcopy(settings)!r}"
    for secret in (OWNER, SCOPE, TOKEN):
        assert secret not in shown
    assert "127.0.0.1" not in repr(settings)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(settings)


def test_settings_cannot_be_changed(powercontext_environment: Configure) -> None:
    settings: Any = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.max_bytes = 1000


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("base_url", "BASE_URL"), ("url", "BASE_URL"), ("api_key", "TOKEN"), ("api_key_env", "TOKEN"), ("token", "TOKEN"), ("scope_id", "SCOPE_ID"),
        ("owner_user_id", "OWNER_USER_ID"), ("timeout_seconds", "RECALL_TIMEOUT_SECONDS"), ("max_injection_chars", "MAX_BYTES"),
        ("remember_timeout_seconds", "REMEMBER_TIMEOUT_SECONDS"),
    ],
)  # fmt: skip
def test_settings_in_yaml_are_refused_with_the_variable_to_set(key: str, variable: str) -> None:
    with pytest.raises(PowerContextConfigurationError, match=f"memory.backend_config.{key} .* POWERCONTEXT_DEERFLOW_{variable} ") as caught:
        parse_backend_config({key: "secret-value", "storage_path": "x"})
    assert "secret-value" not in str(caught.value)


@pytest.mark.parametrize(
    "backend_config",
    [
        {"retries": 3}, {"failure_policy": None}, {"failure_policy": "fail_closed"}, {"failure_policy": {}}, {"failure_policy": {"read": None}},
        {"failure_policy": {"read": "fail-closed"}}, {"failure_policy": {"read": "raise"}}, {"failure_policy": {"read": True}},
        {"failure_policy": {"read": "fail_open", "write": "raise"}}, {"failure_policy": ["read"]}, [], "x", 5, {5: "x"}, {"": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_in_yaml_is_refused(backend_config: Any) -> None:
    with pytest.raises(PowerContextConfigurationError, match=r"memory\.backend_config"):
        parse_backend_config(backend_config)
