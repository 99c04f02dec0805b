"""Where the settings are wrong there is no memory, for anybody, and it costs nobody a run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from powercontext_support import OWNER, READY, Configure, StartHTTP

from deerflow.agents.memory import manager as contract
from deerflow.agents.memory.backends.powercontext import MANAGER_CLASS

pytest_plugins = ("powercontext_support.fixtures",)

READ_ERROR: type[Exception] = getattr(contract, "MemoryReadError", contract.MemoryManagerError)
FAIL_CLOSED = {"failure_policy": {"read": "fail_closed"}}


def errors(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize(
    ("changes", "backend_config", "named"),
    [
        ({"scope_id": None}, {}, "POWERCONTEXT_DEERFLOW_SCOPE_ID is not set"),
        ({"token": '"quoted"'}, {}, "POWERCONTEXT_DEERFLOW_TOKEN has quotes around it; it must be"),
        ({}, {"api_key": "secret-value"}, "memory.backend_config.api_key is not read from YAML"),
        ({"owner_user_id": "default"}, {"failure_policy": {"read": "fail_open"}}, "POWERCONTEXT_DEERFLOW_OWNER_USER_ID must be"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_logged_once_and_costs_nobody_a_run(
    changes: dict[str, Any], backend_config: dict[str, Any], named: str, powercontext_environment: Configure, powercontext_http: StartHTTP, caplog: pytest.LogCaptureFixture
) -> None:
    server = powercontext_http(READY)
    powercontext_environment(**{"base_url": server.base_url} | changes)
    manager = MANAGER_CLASS.from_config(backend_config)
    for user in (OWNER, "u-2", "default", None):
        assert manager.get_context(user, query="refund") == ""
        assert asyncio.run(manager.aget_context(user, query="refund")) == ""
        manager.add("thread", ["x"], user_id=user)
        asyncio.run(manager.aadd("thread", ["x"], user_id=user))
        manager.add_nowait("thread", ["x"], user_id=user)
    manager.warm()
    assert manager.shutdown_flush(1.0) is True
    manager.close()
    [error] = errors(caplog)
    assert named in error
    assert "Until then there is no memory, and runs go on without it." in error
    assert "secret-value" not in error
    assert "quoted" not in error
    assert server.requests == []


@pytest.mark.parametrize("policy", [{"read": "fail_closed"}, {"read": "fail-closed"}, "fail_closed"], ids=str)
def test_with_fail_closed_only_the_owners_runs_stop(policy: Any, powercontext_environment: Configure, caplog: pytest.LogCaptureFixture) -> None:
    powercontext_environment(scope_id=None)
    manager = MANAGER_CLASS.from_config({"failure_policy": policy})
    with pytest.raises(READ_ERROR) as caught:
        manager.get_context(OWNER, query="refund")
    assert str(caught.value) == "PowerContext memory is not configured"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert [manager.get_context(user, query="refund") for user in ("u-2", "default", None)] == ["", "", ""]
    assert "Until then runs stop that need memory." in errors(caplog)[0]


def test_with_fail_closed_and_no_owner_every_signed_in_user_may_be_the_owner(powercontext_environment: Configure) -> None:
    powercontext_environment(owner_user_id="<user id>")
    manager = MANAGER_CLASS.from_config(FAIL_CLOSED)
    with pytest.raises(READ_ERROR):
        manager.get_context("u-2", query="refund")
    assert [manager.get_context(user, query="refund") for user in ("default", None, " ")] == ["", "", ""]


def test_the_memory_page_is_unsupported_as_ever(powercontext_environment: Configure) -> None:
    powercontext_environment(scope_id=None)
    manager = MANAGER_CLASS.from_config({})
    for operation in (manager.get_memory, manager.clear_memory, lambda: manager.search("x"), lambda: manager.create_fact("x")):
        with pytest.raises(NotImplementedError):
            operation()
    assert manager.supports_search is False
    assert manager.mode == "middleware"
