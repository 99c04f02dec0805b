"""What is to be said of DeerFlow: its config.yaml, and what it can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..diagnostics import Finding
from ..errors import PowerContextConfigurationError
from ..host import NO_QUERY, host_forwards_query
from ..yaml_config import parse_backend_config

TOOL_PATH = "deerflow.agents.memory.backends.powercontext.remember_tool:install"


def read_config(path: Path) -> Mapping[str, Any]:
    """Return DeerFlow's config.yaml.

    Raises:
        PowerContextConfigurationError: It cannot be read; the message says why, and quotes nothing of it.
    """
    import yaml  # DeerFlow has it; the backend itself needs none

    problem = "is not a mapping"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(content, Mapping):
            return content
    except OSError:
        problem = "cannot be read"
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError):  # PyYAML lets through what its constructors raise
        problem = "is not valid YAML"
    raise PowerContextConfigurationError(f"{path} {problem}; name DeerFlow's config.yaml with --config")


def check_config(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is to say of DeerFlow's config.yaml."""
    memory = config.get("memory")
    if not isinstance(memory, Mapping) or memory.get("manager_class") != "powercontext":
        yield Finding("failed", "memory", "another backend is configured; set memory.manager_class: powercontext")
        memory = {}
    elif memory.get("enabled", True) is not True or memory.get("injection_enabled", True) is not True:
        yield Finding("failed", "memory", "there is no recall; set memory.enabled and memory.injection_enabled to true (the tool does not depend on them)")
    elif memory.get("mode", "middleware") != "middleware":
        yield Finding("failed", "memory", "the backend refuses this mode; set memory.mode: middleware")
    else:
        yield Finding("ok", "memory", "manager_class powercontext, recall on")
    try:
        parse_backend_config(memory.get("backend_config"))
    except PowerContextConfigurationError as error:
        yield from (Finding("failed", "memory", line.removeprefix("- ")) for line in str(error).splitlines() if line.startswith("- "))
    yield check_plugin(config.get("plugins"))


def check_plugin(plugins: Any) -> Finding:
    """Return what is to say of the tool's entry in ``plugins:``."""
    entries = [entry for entry in plugins if isinstance(entry, Mapping) and entry.get("use") == TOOL_PATH] if isinstance(plugins, list) else []
    if not entries:
        return Finding("warning", "tool", f'nothing can be saved from a chat; add to plugins: - use: "{TOOL_PATH}"')
    enabled = [entry for entry in entries if entry.get("enabled", True) is True]
    if not enabled:
        return Finding("warning", "tool", "nothing can be saved from a chat: the plugin is there but disabled; set enabled: true")
    if any(entry.get("config") for entry in enabled):
        return Finding("failed", "tool", "the plugin refuses settings in YAML; remove its config")
    return Finding("ok", "tool", "`remember` is configured")


def check_host() -> Iterator[Finding]:
    """Yield whether this DeerFlow has what recall and the tool need of it."""
    forwards = host_forwards_query()
    yield Finding("ok" if forwards else "failed", "host", "forwards the query" if forwards else NO_QUERY)
    has_tools = find_spec("deerflow_extension_api") is not None and find_spec("deerflow_extension_api.plugins") is not None
    yield Finding("ok" if has_tools else "warning", "host", "has plugin tools" if has_tools else "this DeerFlow has no plugin tools, so there is no `remember`; update it (extension API 0.2.2)")
