"""The settings there are: each declared once, with its rule, its remedy and its default."""

from __future__ import annotations

import os
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, PrivateAttr, SecretStr, ValidationInfo, field_validator

from ..transport.endpoint import Endpoint
from ..transport.urls import is_loopback, server_url
from .declaring import Seconds, ToolNames, Whole, setting
from .identifiers import OWNER_ID_RULE, SCOPE_ID_RULE, TOKEN_RULE, is_owner_id, is_scope_id, is_token
from .people import People

ENVIRONMENT_PREFIX: Final = "POWERCONTEXT_DEERFLOW_"


class PowerContextSettings(BaseModel):
    """The validated settings.

    Token, owner and Scope show in no ``repr``, dump or pickle, and the URL in no ``repr``.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    base_url: str = setting(
        "where PowerContext answers",
        "must be https://…, or http:// to this machine only (localhost, 127.0.0.0/8, [::1]); a path is allowed, but no user name, query or fragment",
        yaml=("url", "server_url", "endpoint"),
        repr=False,
    )
    bindings_file: str | None = setting(
        "path of a file with several people and their Scopes, instead of the next two",
        "must be the absolute path of a JSON file with bindings, such as /etc/deer-flow/bindings.json",
        yaml=("bindings",),
        default=None,
        repr=False,
    )
    owner_user_id: SecretStr | None = setting(
        "id of the one signed-in DeerFlow user whose memory this is",
        OWNER_ID_RULE,
        yaml=("user_id", "owner"),
        required="required without `BINDINGS_FILE`",
        default=None,
        validate_default=True,
    )
    scope_id: SecretStr | None = setting(
        "id of an existing PowerContext Scope",
        SCOPE_ID_RULE,
        yaml=("scope",),
        required="required without `BINDINGS_FILE`",
        default=None,
        validate_default=True,
    )
    token: SecretStr | None = setting(
        "PowerContext's bearer token",
        f"{TOKEN_RULE}, and may be left out only if PowerContext is on this machine",
        yaml=("api_key", "api_key_env", "api_token"),
        required="required, but on this machine",
        default=None,
        validate_default=True,
    )
    max_bytes: Whole = setting(
        "budget of recalled text in UTF-8 bytes; below 1000 hardly any memory fits",
        "must be a whole number from 512 to 32768, such as 8000",
        yaml=("max_injection_chars", "max_injection_tokens"),
        default=8000,
        ge=512,
        le=32768,
    )
    recall_query: Literal["focused", "full"] = setting(
        "how recall finds: it searches with the request's content words and chooses, or asks once with all of it, which finds less",
        "must be `focused` or `full`",
        yaml=("query",),
        default="focused",
    )
    recall_timeout_seconds: Seconds = setting(
        "limit of a whole recall in seconds; DeerFlow gives up at 5",
        "must be a number over 0 and at most 4, such as 2.0",
        yaml=("timeout", "timeout_seconds", "connect_timeout_seconds"),
        default=2.0,
        gt=0,
        le=4,
    )
    remember_timeout_seconds: Seconds = setting(
        "limit of each step of a save in seconds; a whole save ends before 28",
        "must be a number over 0, such as 5.0",
        default=5.0,
        gt=0,
    )
    tools: ToolNames = setting(
        "which tools the plugin gives the model",
        "must be one or more of remember, recall, correct, forget, each once, with commas between them; for none, take the plugin out of `plugins`",
        default=("remember", "recall", "correct", "forget"),
    )
    capture: Literal["off", "user", "turns"] = setting(
        "whether conversations are sent to be learned from: not at all, what their owner writes, or that and the final answers",
        "must be `off`, `user` or `turns`",
        yaml=("capture_mode",),
        default="off",
    )
    capture_max_entries: Whole = setting(
        "how many captured messages may wait to be sent",
        "must be a whole number from 1 to 1000000, such as 10000",
        default=10_000,
        ge=1,
        le=1_000_000,
    )
    capture_max_bytes: Whole = setting(
        "how many bytes of captured text may wait to be sent",
        "must be a whole number from 1000000 to 999999999, such as 64000000",
        default=64_000_000,
        ge=1_000_000,
    )
    capture_max_days: Whole = setting(
        "after how many days captured text that could not be sent is dropped",
        "must be a whole number from 1 to 365, such as 30",
        default=30,
        ge=1,
        le=365,
    )

    _endpoint: Endpoint = PrivateAttr()
    _people: People = PrivateAttr()
    _bindings_are_open: bool = PrivateAttr(default=False)

    def __getstate__(self) -> dict[Any, Any]:
        raise TypeError("PowerContextSettings holds a token and cannot be pickled")

    @property
    def endpoint(self) -> Endpoint:
        """The server, and the way to it."""
        return self._endpoint

    @property
    def people(self) -> People:
        """Who may use which Scope."""
        return self._people

    @property
    def bindings_are_open(self) -> bool:
        """Whether others than its owner may read or change the bindings file."""
        return self._bindings_are_open

    @property
    def named_in(self) -> str:
        """The variable that says whose memory this is."""
        return ENVIRONMENT_PREFIX + ("OWNER_USER_ID" if self.bindings_file is None else "BINDINGS_FILE")

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        if server_url(value) is None:
            raise ValueError
        return value

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError
        return value

    @field_validator("bindings_file")
    @classmethod
    def _check_bindings_file(cls, value: str | None) -> str | None:
        if value is not None and not os.path.isabs(value):
            raise ValueError
        return value

    @field_validator("owner_user_id", "scope_id")
    @classmethod
    def _check_identifier(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        fits = is_owner_id if info.field_name == "owner_user_id" else is_scope_id
        if info.data.get("bindings_file", "") is None if value is None else not fits(value.get_secret_value()):
            raise ValueError
        return value

    @field_validator("token")
    @classmethod
    def _check_token(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None:
            if info.data.get("bindings_file", "") is None and needs_token(info.data.get("base_url")):
                raise ValueError
        elif not is_token(value.get_secret_value()):
            raise ValueError
        return value


def needs_token(base_url: object) -> bool:
    """Tell whether a request to ``base_url`` has to carry a token: it leaves this machine."""
    url = server_url(base_url)
    return url is not None and not is_loopback(url)


VARIABLES: Final = {ENVIRONMENT_PREFIX + name.upper(): name for name in PowerContextSettings.model_fields}
"""The environment's variables, each with the setting it gives."""


def told_about(name: str) -> dict[str, Any]:
    """Return the ``remedy`` and the ``yaml`` names of a setting."""
    return cast("dict[str, Any]", PowerContextSettings.model_fields[name].json_schema_extra)
