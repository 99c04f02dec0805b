"""Settings: one frozen snapshot a process, from the environment, shared by recall and saving (RFC section 5).

DeerFlow's YAML carries no binding: DeerFlow shows it to every signed-in user, and its extension manager rewrites it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import threading
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import httpx
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from .errors import PowerContextConfigurationError
from .people import is_usable_user_id
from .transport.proxy import environment_proxy, has_usable_address, host_of

ENVIRONMENT_PREFIX: Final = "POWERCONTEXT_DEERFLOW_"

_INTEGER = re.compile(r"[0-9]{1,9}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_TOKEN = re.compile(r"[\x21-\x7e]+")

ReadPolicy = Literal["fail_open", "fail_closed"]

# What a wrong value is told, after the variable's name.
_REMEDIES: Final = {
    "base_url": "must be https://…, or http:// to this machine only (localhost, 127.0.0.0/8, [::1]); a path is allowed, but no user name, query or fragment",
    "owner_user_id": "must be the id of a signed-in DeerFlow user, without white space around it, and not `default`, which is what DeerFlow calls a caller it does not know",
    "scope_id": "must be the id of a PowerContext Scope: 1 to 256 characters, without white space around it",
    "token": "must be printable ASCII without white space (look for a stray space or line end), and may be left out only if PowerContext is on this machine",
    "max_bytes": "must be a whole number from 512 to 32768, such as 8000",
    "recall_query": "must be `focused` or `full`",
    "recall_timeout_seconds": "must be a number over 0 and at most 4, such as 2.0",
    "remember_timeout_seconds": "must be a number over 0, such as 5.0",
}


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` is this machine: ``localhost``, 127.0.0.0/8 or ``::1``, the rule of PowerContext's own client."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def _integer(value: object) -> object:
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


def _seconds(value: object) -> object:
    return float(value) if isinstance(value, str) and _SECONDS.fullmatch(value) else value


def _is_text(value: str) -> bool:
    """Tell whether ``value`` is neither blank nor padded, and was valid UTF-8 in the environment."""
    return value != "" and value == value.strip() and not any("\ud800" <= character <= "\udfff" for character in value)


def _server_url(base_url: object) -> httpx.URL | None:
    """Return the parsed ``base_url``, or ``None`` if it is not one we may send memory to."""
    try:
        url = httpx.URL(base_url) if isinstance(base_url, str) else httpx.URL()
    except (httpx.InvalidURL, UnicodeError):
        return None
    safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(host_of(url)))
    return url if safe and has_usable_address(url) and not re.search(r"[\s@?#]", str(base_url)) else None


class PowerContextSettings(BaseModel):
    """The validated settings. Token, owner and Scope show in no ``repr``, dump or pickle, and the URL in no ``repr``."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

    base_url: str = Field(repr=False, description="where PowerContext answers")
    owner_user_id: SecretStr = Field(description="id of the one signed-in DeerFlow user whose memory this is")
    scope_id: SecretStr = Field(description="id of an existing PowerContext Scope")
    token: SecretStr | None = Field(default=None, validate_default=True, description="PowerContext's bearer token")
    max_bytes: Annotated[int, BeforeValidator(_integer)] = Field(
        default=8000,
        ge=512,
        le=32768,
        description="budget of recalled text in UTF-8 bytes; below 1000 hardly any memory fits",
    )
    recall_query: Literal["focused", "full"] = Field(default="focused", description="what of a request is searched for: its content words, or all of it (for servers that search vectors)")
    recall_timeout_seconds: Annotated[float, BeforeValidator(_seconds)] = Field(default=2.0, gt=0, le=4, description="limit of a whole recall in seconds; DeerFlow gives up at 5")
    remember_timeout_seconds: Annotated[float, BeforeValidator(_seconds)] = Field(default=5.0, gt=0, description="limit of each step of a save in seconds; a whole save ends before 28")
    proxy_url: SecretStr | None = Field(default=None, description="found in the environment, not a variable of its own")

    def __getstate__(self) -> dict[Any, Any]:
        raise TypeError("PowerContextSettings holds a token and cannot be pickled")

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        if _server_url(value) is None:
            raise ValueError
        return value

    @field_validator("owner_user_id", "scope_id")
    @classmethod
    def _check_identifier(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        text = value.get_secret_value()
        fits = is_usable_user_id(text) if info.field_name == "owner_user_id" else len(text) <= 256 and text not in (".", "..")
        if not fits or not _is_text(text):
            raise ValueError
        return value

    @field_validator("token")
    @classmethod
    def _check_token(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None:
            url = _server_url(info.data.get("base_url"))
            if url is not None and not is_loopback(host_of(url)):
                raise ValueError
        elif not _TOKEN.fullmatch(value.get_secret_value()):
            raise ValueError
        return value


VARIABLES: Final = {ENVIRONMENT_PREFIX + name.upper(): name for name in _REMEDIES}
"""The environment's variables, each with the setting it gives."""

_lock = threading.Lock()
_loaded: PowerContextSettings | str | None = None


def load_settings() -> PowerContextSettings:
    """Return the process's settings, read from the environment by the first call; what came out holds until a restart.

    Raises:
        PowerContextConfigurationError: Names every wrong variable and how to mend it, and no value.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _read_environment()
        if isinstance(_loaded, str):
            raise PowerContextConfigurationError(_loaded)
        return _loaded


def reset_settings() -> None:
    """Forget the snapshot, so that the next ``load_settings`` reads the environment again. For tests."""
    global _loaded
    with _lock:
        _loaded = None


def _read_environment() -> PowerContextSettings | str:
    """Return the settings, or the sentences about all that is wrong with them."""
    given = {variable: value for variable, value in os.environ.items() if variable.startswith(ENVIRONMENT_PREFIX)}
    faults = [f"{variable} is not a setting of this backend; there are {', '.join(VARIABLES)}" for variable in given if variable not in VARIABLES]
    values: dict[str, Any] = {name: given[variable] for variable, name in VARIABLES.items() if variable in given}
    url = _server_url(values.get("base_url"))
    try:
        values["proxy_url"] = environment_proxy(url) if url is not None and not is_loopback(host_of(url)) else None
    except PowerContextConfigurationError as error:
        faults.append(str(error))
    try:
        settings = PowerContextSettings.model_validate(values)
    except ValidationError as error:
        faults += [_sentence(str(fault["loc"][0]), given) for fault in error.errors(include_input=False, include_context=False, include_url=False)]
    if faults:
        return "\n- ".join(["PowerContext memory is not configured. Mend this in the Gateway's environment and restart it:", *faults])
    return settings


def _sentence(name: str, given: Mapping[str, str]) -> str:
    variable = ENVIRONMENT_PREFIX + name.upper()
    problem = "" if variable in given else f"is not set ({PowerContextSettings.model_fields[name].description}); it "
    return f"{variable} {problem}{_REMEDIES[name]}"


_YAML_ALTERNATIVES: Final = {
    "base_url": ("url", "server_url", "endpoint"),
    "owner_user_id": ("user_id", "owner"),
    "scope_id": ("scope",),
    "token": ("api_key", "api_key_env", "api_token"),
    "max_bytes": ("max_injection_chars", "max_injection_tokens"),
    "recall_query": ("query",),
    "recall_timeout_seconds": ("timeout", "timeout_seconds", "connect_timeout_seconds"),
    "remember_timeout_seconds": (),
}


def parse_backend_config(backend_config: object) -> ReadPolicy:
    """Return the read policy of ``memory.backend_config``, the one thing YAML may say; ``storage_path`` comes from the host and is not used.

    Raises:
        PowerContextConfigurationError: Anything else is in it; the message names the variable to set instead, and no
            value.
    """
    config = {} if backend_config is None else backend_config
    if not isinstance(config, Mapping):
        raise PowerContextConfigurationError("memory.backend_config must be a mapping, such as {}")
    keys = ["".join(sign if sign.isprintable() else "?" for sign in str(key)) for key in config if key not in ("storage_path", "should_keep_hidden_message", "failure_policy")]
    moved = {key: name for key in keys for name, others in _YAML_ALTERNATIVES.items() if key == name or key in others}
    faults = [f"memory.backend_config.{key} is not read from YAML: set {ENVIRONMENT_PREFIX}{name.upper()} in the Gateway's environment and remove it" for key, name in moved.items()]
    if foreign := [key[:40] for key in keys if key not in moved]:
        faults.append(f"memory.backend_config has what belongs to another backend; remove {', '.join(foreign)}")
    policy = config.get("failure_policy", {"read": "fail_open"})
    if policy not in ({"read": "fail_open"}, {"read": "fail_closed"}):
        faults.append("memory.backend_config.failure_policy must be {read: fail_open} or {read: fail_closed}, or absent")
    if faults:
        raise PowerContextConfigurationError("\n- ".join(["PowerContext memory is not configured. Mend this in config.yaml and restart the Gateway:", *faults]))
    return "fail_closed" if policy == {"read": "fail_closed"} else "fail_open"
