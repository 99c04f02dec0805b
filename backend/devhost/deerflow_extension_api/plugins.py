"""What a plugin may contribute: here, tools for the model."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from .auth import ExtensionPrincipal


@dataclass(frozen=True)
class ToolContext:
    """What a handler learns of a call, from the host and not from the model."""

    principal: ExtensionPrincipal
    settings: Mapping[str, Any] = field(default_factory=dict)
    thread_id: str | None = None


@dataclass(frozen=True)
class ModelTool:
    """A tool for the model.

    Raises:
        ValueError: The declaration breaks a rule of the host.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    handler: Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]
    group: str = "extensions"

    def __post_init__(self) -> None:
        schema_text = json.dumps(self.input_schema)
        rules = {
            "the name": re.fullmatch(r"[a-z][a-z0-9_]{0,63}", self.name),
            "the description": self.description.strip(),
            "the handler": inspect.iscoroutinefunction(self.handler),
            "the schema's type": self.input_schema.get("type") == "object",
            "a reference in the schema": not re.search(r'"\$(?:ref|dynamicRef|recursiveRef)"', schema_text),
            "a reserved property": not {"runtime", "config"} & set(self.input_schema.get("properties", {})),
        }
        for what, holds in rules.items():
            if not holds:
                raise ValueError(f"{what} of tool {self.name!r} is not allowed")
        Draft202012Validator.check_schema(self.input_schema)


@dataclass(frozen=True)
class PluginContribution:
    """A plugin. Nothing of it is used unless ``enabled`` is exactly true."""

    namespace: str
    title: str
    description: str = ""
    enabled: bool = False
    tools: tuple[ModelTool, ...] = ()
    api_version: int = 1

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_.-]{0,95}", self.namespace):
            raise ValueError(f"the namespace {self.namespace!r} is not allowed")
