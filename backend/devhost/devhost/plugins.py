"""Stand-in for DeerFlow's plugin loader and the tools it gives a model."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

from deerflow_extension_api.auth import ExtensionPrincipal
from deerflow_extension_api.plugins import ModelTool, PluginContribution, ToolContext
from jsonschema import Draft202012Validator
from langchain_core.tools import ToolException

from deerflow.agents.memory.manager import read_config
from deerflow.runtime.user_context import resolve_runtime_user_id

logger = logging.getLogger(__name__)

CALL_LIMIT_SECONDS = 30.0
MAX_INPUT_BYTES = 256 * 1024
MAX_RESULT_BYTES = 64 * 1024


@dataclass
class Registry:
    """Collects what plugins contribute."""

    contributions: dict[str, PluginContribution] = field(default_factory=dict)

    def plugin(self, contribution: PluginContribution) -> bool:
        """Accept a plugin.

        Raises:
            ValueError: The namespace is taken.
        """
        if contribution.namespace in self.contributions:
            raise ValueError(f"the namespace {contribution.namespace!r} is taken")
        self.contributions[contribution.namespace] = contribution
        return True


@dataclass(frozen=True)
class ToolMessage:
    """What the model gets back from a call."""

    content: str
    status: str


def load_plugins() -> Registry:
    """Install each enabled entry of ``plugins:`` in config.yaml. One that fails is logged and left out, unless it is ``required``."""
    registry = Registry()
    for entry in read_config().get("plugins") or []:
        unknown = set(entry) - {"use", "enabled", "name", "package", "config", "required", "table_prefix", "host_access"}
        if unknown:
            raise ValueError(f"plugins: unknown keys {sorted(unknown)}")
        if not entry.get("enabled", True):
            continue
        module, _, attribute = entry["use"].rpartition(":")
        try:
            getattr(importlib.import_module(module), attribute)(registry, dict(entry.get("config") or {}))
        except Exception:
            if entry.get("required", False):
                raise
            logger.exception("Plugin %s failed and is left out", entry["use"])
    return registry


def final_name(namespace: str, name: str) -> str:
    """Return the name the model sees."""
    digest = hashlib.sha256(f"{namespace}:{name}".encode()).hexdigest()[:12]
    return f"ext_{re.sub('[^a-z0-9_]', '_', namespace)[:20]}_{name[:25]}_{digest}"


def tools_of(registry: Registry) -> dict[str, ModelTool]:
    """Return the tools the model is offered, by their final names."""
    enabled = [contribution for contribution in registry.contributions.values() if contribution.enabled is True]
    return {final_name(contribution.namespace, tool.name): tool for contribution in enabled for tool in contribution.tools}


async def call_tool(tool: ModelTool, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> ToolMessage:
    """Call ``tool`` as the model would, in a run with this ``context``."""
    if len(json.dumps(arguments)) > MAX_INPUT_BYTES or not Draft202012Validator(tool.input_schema).is_valid(arguments):
        return ToolMessage("Invalid plugin tool input.", "error")
    user_id = resolve_runtime_user_id(SimpleNamespace(context=context))
    tool_context = ToolContext(ExtensionPrincipal(user_id), thread_id=context.get("thread_id"))
    try:
        async with asyncio.timeout(CALL_LIMIT_SECONDS):
            result = await tool.handler(MappingProxyType(dict(arguments)), tool_context)
        content = json.dumps(result, ensure_ascii=False, allow_nan=False)
        if len(content.encode()) > MAX_RESULT_BYTES:
            raise ValueError("the result is too large")
    except ToolException as error:
        return ToolMessage(str(error), "error")
    except Exception as error:
        logger.warning("Plugin tool %s failed: %s", tool.name, type(error).__name__)
        return ToolMessage("Plugin tool unavailable or input rejected.", "error")
    return ToolMessage(content, "success")
