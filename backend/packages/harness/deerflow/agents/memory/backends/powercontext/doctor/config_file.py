"""DeerFlow's config.yaml as DeerFlow reads it.

Variables are resolved, strings taken for booleans as its models take them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ..errors import PowerContextConfigurationError

CONFIG_VARIABLE: Final = "DEER_FLOW_CONFIG_PATH"
_OPTION: Final = "--config (make doctor: CONFIG=)"
_TRUTH = TypeAdapter(bool)


def read_config(path: Path, *, by_variable: bool = False) -> Mapping[str, Any]:
    """Return DeerFlow's config.yaml, read within a moment whatever ``path`` is.

    Args:
        path: The file.
        by_variable: Whether DeerFlow looks for it there because a variable says so.

    Raises:
        PowerContextConfigurationError: It cannot be read; the message says why and where, and quotes nothing of it.
    """
    import yaml  # DeerFlow has it; the backend itself needs none

    problem, remedy = "is not a mapping", "correct it there, or name another"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise IsADirectoryError
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(content, Mapping):
            return content
        problem = "is empty" if content is None else problem
    except FileNotFoundError:
        problem, remedy = "is not there", "make it with DeerFlow's own `make config`, or name another"
    except IsADirectoryError:
        problem, remedy = "is not a file", "name DeerFlow's config.yaml"
    except OSError:
        problem = "cannot be read by this user"
    except UnicodeError:
        problem = "is not UTF-8"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = f"is not valid YAML, at line {mark.line + 1}, column {mark.column + 1}" if mark else "is not valid YAML"
    # PyYAML lets through what its constructors raise
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        problem = "is not valid YAML"
    if by_variable:
        remedy = "correct it there, or the variable" if remedy.startswith("correct") else "correct the variable, or remove it"
        raise PowerContextConfigurationError(f"{path}, which {CONFIG_VARIABLE} names, {problem}; {remedy}")
    raise PowerContextConfigurationError(f"{path} {problem}; {remedy} with {_OPTION}")


def repeated_sections(path: Path) -> list[str]:
    """Return what is wrong with the sections that are there twice, of those that count here.

    YAML takes the last and says nothing.
    """
    lines: dict[str, list[int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if found := re.match(r"(memory|plugins|database)\s*:", line):
            lines.setdefault(found[1], []).append(number)
    return [_repeated(name, numbers) for name, numbers in lines.items() if len(numbers) > 1]


def _repeated(name: str, numbers: list[int]) -> str:
    places = ", ".join(map(str, numbers))
    return f"{name} is there more than once, at lines {places}, and only the last counts; make one section of them"


def resolved(value: Any) -> Any:
    """Return ``value`` with every string that starts with ``$`` replaced by that variable, as DeerFlow does.

    Raises:
        PowerContextConfigurationError: A variable is not set, so DeerFlow does not start; the message names it.
    """
    if isinstance(value, str) and value.startswith("$"):
        if (found := os.environ.get(value[1:])) is None:
            raise PowerContextConfigurationError(
                f"{value} is in config.yaml and not set, so DeerFlow does not start: set it, or write the value",
            )
        return found
    if isinstance(value, Mapping):
        return {key: resolved(item) for key, item in value.items()}
    return [resolved(item) for item in value] if isinstance(value, list) else value


def is_true(value: object) -> bool | None:
    """Return what DeerFlow's models make of ``value`` where they want a boolean, or ``None`` if they refuse it."""
    try:
        return _TRUTH.validate_python(value)
    except ValidationError:
        return None
