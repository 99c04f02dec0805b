"""Settings: one frozen snapshot per process, from the environment, shared by recall and tools (RFC section 5).

DeerFlow's YAML carries no binding: DeerFlow shows it to every signed-in user, and its extension manager rewrites it.
``yaml_config.py`` says what YAML may hold.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from ..errors import PowerContextConfigurationError
from ..transport.endpoint import find_endpoint
from ..transport.forking import in_forked_children
from ..transport.urls import server_url, url_fault
from .bindings_file import ADD_A_PERSON, parse, read_file
from .identifiers import slip_in
from .people import Entry, People
from .variables import ENVIRONMENT_PREFIX, VARIABLES, PowerContextSettings, needs_token, told_about

__all__ = ["ENVIRONMENT_PREFIX", "VARIABLES", "PowerContextSettings", "load_settings", "reset_settings", "told_about"]


class _Snapshot:
    """What the environment came to when it was first read: settings, or what is wrong with them.

    It holds until a restart.
    """

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
        raise PowerContextConfigurationError(
            "\n- ".join(
                [
                    "PowerContext memory is not configured. Correct this in the Gateway's environment and restart it:",
                    *self._faults,
                ],
            ),
        )

    def forget(self) -> None:
        with self._lock:
            self._settings, self._faults = None, []


_TEXTS = ("base_url", "owner_user_id", "scope_id", "token")

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
    meant = {variable: _meant_by(variable) for variable in given if variable not in VARIABLES}
    faults = [_unknown(variable, name) for variable, name in meant.items()]
    values = {name: given[variable] for variable, name in VARIABLES.items() if variable in given}
    if "bindings_file" in values:
        for name in ("owner_user_id", "scope_id"):
            if values.pop(name, None) is not None:
                both = f"{_variable(name)} and {_variable('bindings_file')}"
                faults.append(f"{both} both say whose memory this is: remove one of the two")
    settings, more = read_settings(values, asked_for={name for name in meant.values() if name})
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


def read_settings(
    values: Mapping[str, str],
    asked_for: Collection[str] = (),
) -> tuple[PowerContextSettings | None, list[str]]:
    """Return the settings of ``values``, without people, or the sentences about all that is wrong with them.

    Args:
        values: What was set.
        asked_for: Settings that are there under a wrong name, which has been told: they are not told again as missing.
    """
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
        details = error.errors(include_input=False, include_context=False, include_url=False)
        wrong = [str(fault["loc"][0]) for fault in details]
        faults += [_sentence(name, values) for name in wrong if name in values or name not in asked_for]
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
            entries, faults = parse(
                file.content,
                token_needed=needs_token(values.get("base_url")) and "token" not in values,
            )
            if not entries and not faults:
                faults = [f"the file has no binding; {ADD_A_PERSON}"]
            return cls(entries, [f"{_variable('bindings_file')}: {fault}" for fault in faults], file.open_to_others)
        return cls([], [f"{_variable('bindings_file')}: the file cannot be used: {problem}"])


def _unknown(variable: str, meant: str | None) -> str:
    known = f"did you mean {_variable(meant)}?" if meant else f"there are {', '.join(VARIABLES)}"
    return f"{variable} is not a setting of this backend; {known}"


def _meant_by(variable: str) -> str | None:
    """Return the setting that a variable with our prefix is probably for: by another usual name, or by a slip."""
    from difflib import get_close_matches  # 8 ms that only a slip is worth

    written = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    usual = {other: name for name in VARIABLES.values() for other in (name, *told_about(name)["yaml"])}
    close = get_close_matches(written, usual, n=1, cutoff=0.6)
    return usual[close[0]] if close else None


def _almost(variable: str) -> str | None:
    """Return a variable of the environment that is ``variable`` but for its prefix."""
    from difflib import SequenceMatcher

    for other in os.environ:
        written = other.upper()
        if other not in VARIABLES and (SequenceMatcher(None, written, variable).ratio() > 0.9 or sorted(written.split("_")) == sorted(variable.split("_"))):
            return other
    return None


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


def _sentence(name: str, given: Mapping[str, str]) -> str:
    variable, remedy = _variable(name), told_about(name)["remedy"]
    if name not in given:
        if other := _almost(variable):
            return f"{variable} is not set, but {other} is: did you mean that? Rename it"
        if other := next((other for other, value in os.environ.items() if f"{variable}=" in value), None):
            return f"{variable} is not set, but stands within the value of {other}: a line end or a closing quote is missing before it"
        return f"{variable} is not set ({PowerContextSettings.model_fields[name].description}); it {remedy}"
    slip = slip_in(given[name]) if name in _TEXTS else ""
    if not slip and name == "base_url":
        slip = url_fault(given[name])
    return f"{variable} {slip}; it {remedy}" if slip else f"{variable} {remedy}"
