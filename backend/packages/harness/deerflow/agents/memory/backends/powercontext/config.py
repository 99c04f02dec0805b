"""Settings: one frozen snapshot per process, from the environment, shared by recall and tools (RFC section 5).

DeerFlow's YAML carries no binding: DeerFlow shows it to every signed-in user, and its extension manager rewrites it.
``yaml_config.py`` says what YAML may hold.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from .declaring import Seconds, Whole, setting
from .errors import PowerContextConfigurationError
from .identifiers import is_owner_id, is_scope_id, is_token
from .people import Binding, People
from .transport.endpoint import Endpoint, find_endpoint, is_loopback, server_url
from .transport.forking import in_forked_children

ENVIRONMENT_PREFIX: Final = "POWERCONTEXT_DEERFLOW_"


class PowerContextSettings(BaseModel):
    """The validated settings. Token, owner and Scope show in no ``repr``, dump or pickle, and the URL in no ``repr``."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    base_url: str = setting(
        "where PowerContext answers",
        "must be https://…, or http:// to this machine only (localhost, 127.0.0.0/8, [::1]); a path is allowed, but no user name, query or fragment",
        yaml=("url", "server_url", "endpoint"),
        repr=False,
    )
    owner_user_id: SecretStr = setting(
        "id of the one signed-in DeerFlow user whose memory this is",
        "must be the id of a signed-in DeerFlow user as DeerFlow's user table has it: nothing around it, such as quotes, spaces or a comment, "
        "no variable that is not filled in, no e-mail address, no sign that does not show; and not `default`, which is what DeerFlow calls a caller it does not know",
        yaml=("user_id", "owner"),
    )
    scope_id: SecretStr = setting(
        "id of an existing PowerContext Scope",
        "must be the id of a PowerContext Scope, 1 to 256 characters: nothing around it, such as quotes, spaces or a comment, and no variable that is not filled in",
        yaml=("scope",),
    )
    token: SecretStr | None = setting(
        "PowerContext's bearer token",
        "must be printable ASCII without white space or quotes (look for a stray space, a line end, a variable that is not filled in), and may be left out only if PowerContext is on this machine",
        yaml=("api_key", "api_key_env", "api_token"),
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
        "what of a request is searched for: its content words, or all of it (for servers that search vectors)",
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

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        if server_url(value) is None:
            raise ValueError
        return value

    @field_validator("owner_user_id", "scope_id")
    @classmethod
    def _check_identifier(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        fits = is_owner_id if info.field_name == "owner_user_id" else is_scope_id
        if not fits(value.get_secret_value()):
            raise ValueError
        return value

    @field_validator("token")
    @classmethod
    def _check_token(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None:
            url = server_url(info.data.get("base_url"))
            if url is not None and not is_loopback(url):
                raise ValueError
        elif not is_token(value.get_secret_value()):
            raise ValueError
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Derive what is no variable of its own."""
        self._people = People({self.owner_user_id.get_secret_value(): Binding(1, 1, self.scope_id, self.token)})


VARIABLES: Final = {ENVIRONMENT_PREFIX + name.upper(): name for name in PowerContextSettings.model_fields}
"""The environment's variables, each with the setting it gives."""


def told_about(name: str) -> dict[str, Any]:
    """Return the ``remedy`` and the ``yaml`` names of a setting."""
    return cast("dict[str, Any]", PowerContextSettings.model_fields[name].json_schema_extra)


class _Snapshot:
    """What the environment came to when it was first read: settings, or what is wrong with them. It holds until a restart."""

    def __init__(self) -> None:
        self._start()
        in_forked_children(self._start_in_child)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._settings: PowerContextSettings | None = None
        self._faults: list[str] = []

    def _start_in_child(self) -> None:
        self._lock = threading.Lock()  # a thread of the parent may hold the old one; what was read stays

    def settings(self) -> PowerContextSettings:
        with self._lock:
            if self._settings is None and not self._faults:
                self._settings, self._faults = _read_environment()
            if self._settings is not None:
                return self._settings
        raise PowerContextConfigurationError("\n- ".join(["PowerContext memory is not configured. Correct this in the Gateway's environment and restart it:", *self._faults]))

    def forget(self) -> None:
        with self._lock:
            self._settings, self._faults = None, []


_snapshot = _Snapshot()


def load_settings() -> PowerContextSettings:
    """Return the process's settings, read from the environment by the first call; what came out holds until a restart.

    Raises:
        PowerContextConfigurationError: Names every wrong variable and how to correct it, and no value.
    """
    return _snapshot.settings()


def reset_settings() -> None:
    """Forget the snapshot, so that the next ``load_settings`` reads the environment again. For tests."""
    _snapshot.forget()


def _read_environment() -> tuple[PowerContextSettings | None, list[str]]:
    """Return the settings, or the sentences about all that is wrong with them."""
    given = {variable: value for variable, value in os.environ.items() if variable.startswith(ENVIRONMENT_PREFIX)}
    faults = [_unknown(variable) for variable in given if variable not in VARIABLES]
    values: dict[str, Any] = {name: given[variable] for variable, name in VARIABLES.items() if variable in given}
    settings = endpoint = None
    try:
        url = server_url(values.get("base_url"))
        endpoint = find_endpoint(url) if url is not None else None
    except PowerContextConfigurationError as error:
        faults.append(str(error))
    try:
        settings = PowerContextSettings.model_validate(values)
    except ValidationError as error:
        faults += [_sentence(str(fault["loc"][0]), given) for fault in error.errors(include_input=False, include_context=False, include_url=False)]
    if faults or settings is None or endpoint is None:
        return None, faults
    settings._endpoint = endpoint
    return settings, []


def _unknown(variable: str) -> str:
    from difflib import get_close_matches  # 8 ms that only a slip is worth

    meant = get_close_matches(variable, VARIABLES, n=1, cutoff=0.75)
    known = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(VARIABLES)}"
    return f"{variable} is not a setting of this backend; {known}"


def _sentence(name: str, given: Mapping[str, str]) -> str:
    variable = ENVIRONMENT_PREFIX + name.upper()
    problem = "" if variable in given else f"is not set ({PowerContextSettings.model_fields[name].description}); it "
    return f"{variable} {problem}{told_about(name)['remedy']}"
