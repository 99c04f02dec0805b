"""How a setting is declared: all that is to be known of it at one place, and numbers as the environment writes them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

_INTEGER = re.compile(r"[0-9]{1,9}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def _integer(value: object) -> object:
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


def _seconds(value: object) -> object:
    return float(value) if isinstance(value, str) and _SECONDS.fullmatch(value) else value


def _names(value: object) -> object:
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_integer)]
"""A whole number."""

Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A number of seconds, with a point if it has a fraction."""


ToolNames = Annotated[tuple[Literal["remember", "recall", "correct", "forget"], ...], BeforeValidator(_names)]
"""Names of tools, with commas between them."""


def setting(meaning: str, remedy: str, *, yaml: tuple[str, ...] = (), required: str = "", **limits: Any) -> Any:
    """Declare a setting.

    Args:
        meaning: For the table in the README, and for whoever left it out.
        remedy: What a wrong value is told, after the variable's name.
        required: When it may not be left out, for one that is required at times only.
        yaml: Names under which people look for it in ``memory.backend_config``, beside its own.
        limits: Default and limits, as for ``pydantic.Field``.
    """
    return Field(
        description=meaning,
        json_schema_extra={"remedy": remedy, "yaml": list(yaml), "required": required},
        **limits,
    )
