"""Settings: one frozen snapshot per process, from the environment, shared by recall and tools (RFC section 5).

DeerFlow's YAML carries no binding: DeerFlow shows it to every signed-in user, and its extension manager rewrites it.
``yaml_config.py`` says what YAML may hold.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from ..errors import PowerContextConfigurationError
from ..transport.endpoint import find_endpoint, server_url, url_fault
from ..transport.forking import in_forked_children
from .bindings_file import parse, read_file
from .people import Entry, People
from .variables import ENVIRONMENT_PREFIX, VARIABLES, PowerContextSettings, needs_token, told_about

__all__ = ["ENVIRONMENT_PREFIX", "VARIABLES", "PowerContextSettings", "load_settings", "reset_settings", "told_about"]


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
    values = {name: given[variable] for variable, name in VARIABLES.items() if variable in given}
    twice = [name for name in ("owner_user_id", "scope_id") if "bindings_file" in values and values.pop(name, None) is not None]
    faults += [f"{_variable(name)} and {_variable('bindings_file')} both say whose memory this is: remove one of the two" for name in twice]
    settings, more = read_settings(values)
    bindings = _Bindings.of(values)
    faults += [*more, *bindings.faults]
    if faults or settings is None:
        return None, faults
    entries = bindings.entries
    if settings.owner_user_id is not None and settings.scope_id is not None:
        entries = [Entry(settings.owner_user_id.get_secret_value(), settings.scope_id.get_secret_value())]
    settings._people = People(entries, settings.token)
    settings._bindings_are_open = bindings.open_to_others
    return settings, []


def read_settings(values: Mapping[str, str]) -> tuple[PowerContextSettings | None, list[str]]:
    """Return the settings of ``values``, without people, or the sentences about all that is wrong with them."""
    faults = []
    settings = endpoint = None
    try:
        url = server_url(values.get("base_url"))
        endpoint = find_endpoint(url) if url is not None else None
    except PowerContextConfigurationError as error:
        faults.append(str(error))
    try:
        settings = PowerContextSettings.model_validate(values)
    except ValidationError as error:
        faults += [_sentence(str(fault["loc"][0]), values) for fault in error.errors(include_input=False, include_context=False, include_url=False)]
    if faults or settings is None or endpoint is None:
        return None, faults
    settings._endpoint = endpoint
    return settings, []


@dataclass(frozen=True, repr=False)
class _Bindings:
    """What the bindings file came to."""

    entries: list[Entry]
    faults: list[str]
    open_to_others: bool = False

    @classmethod
    def of(cls, values: Mapping[str, str]) -> _Bindings:
        """Read the file, if there is to be one, however wrong the other settings are."""
        path = values.get("bindings_file")
        if path is None or not os.path.isabs(path):
            return cls([], [])
        try:
            file = read_file(path)
        except PowerContextConfigurationError as error:
            problem = str(error)
        else:
            entries, faults = parse(file.content, token_needed=needs_token(values.get("base_url")) and "token" not in values)
            if not entries and not faults:
                faults = ["the file has no binding; add a person"]
            return cls(entries, [f"{_variable('bindings_file')}: {fault}" for fault in faults], file.open_to_others)
        return cls([], [f"{_variable('bindings_file')}: the file cannot be used: {problem}"])


def _unknown(variable: str) -> str:
    from difflib import get_close_matches  # 8 ms that only a slip is worth

    meant = get_close_matches(variable, VARIABLES, n=1, cutoff=0.75)
    known = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(VARIABLES)}"
    return f"{variable} is not a setting of this backend; {known}"


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


def _sentence(name: str, given: Mapping[str, str]) -> str:
    problem = "" if name in given else f"is not set ({PowerContextSettings.model_fields[name].description}); it "
    if name == "base_url" and name in given:
        problem = f"{url_fault(given[name])}; it "
    return f"{_variable(name)} {problem}{told_about(name)['remedy']}"
