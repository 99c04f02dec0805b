"""What is to be said of DeerFlow: its config.yaml, and what it can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from ..diagnostics import Finding
from ..errors import PowerContextConfigurationError
from ..host import NO_QUERY, host_forwards_query
from ..settings.yaml_config import parse_backend_config
from .config_file import is_true, resolved

TOOL_PATH = "deerflow.agents.memory.backends.powercontext.remember_tool:install"


def check_config(config: Mapping[str, Any], tools: Sequence[str]) -> Iterator[Finding]:
    """Yield what is to say of DeerFlow's config.yaml; ``tools`` are those the settings ask for."""
    try:
        memory, plugins = resolved(config.get("memory")), resolved(config.get("plugins"))
    except PowerContextConfigurationError as error:
        yield Finding("failed", "config", str(error))
        return
    memory = memory if isinstance(memory, Mapping) else {}
    yield _check_memory(memory)
    try:
        parse_backend_config(memory.get("backend_config"))
    except PowerContextConfigurationError as error:
        yield from (Finding("failed", "memory", line.removeprefix("- ")) for line in str(error).splitlines() if line.startswith("- "))
    yield check_plugin(plugins, tools, mode=mode_of(config))


def mode_of(config: Mapping[str, Any]) -> str:
    """Return ``memory.mode``, as far as it can be read."""
    memory = config.get("memory")
    return str(memory.get("mode", "middleware")) if isinstance(memory, Mapping) else "middleware"


def _check_memory(memory: Mapping[str, Any]) -> Finding:
    manager_class, mode = memory.get("manager_class"), memory.get("mode", "middleware")
    switches = {name: is_true(memory.get(name, True)) for name in ("enabled", "injection_enabled")}
    if manager_class != "powercontext":
        meant = get_close_matches(str(manager_class).lower(), ["powercontext"], cutoff=0.7)
        return Finding("failed", "memory", f"memory.manager_class is misspelt; set it to {meant[0]}" if meant else "another backend is configured; set memory.manager_class: powercontext")
    if None in switches.values():
        names = " and ".join(f"memory.{name}" for name, value in switches.items() if value is None)
        return Finding("failed", "memory", f"{names} is neither true nor false, so DeerFlow does not start; set it to true")
    if False in switches.values():
        return Finding("failed", "memory", "there is no recall; set memory.enabled and memory.injection_enabled to true (the tools do not depend on them)")
    if mode not in ("middleware", "tool"):
        return Finding("failed", "memory", "there is no such mode, so DeerFlow does not start; set memory.mode to middleware or tool")
    return Finding("ok", "memory", "manager_class powercontext, recall on" + (", DeerFlow's own memory tools" if mode == "tool" else ""))


def check_plugin(plugins: Any, tools: Sequence[str], *, mode: str) -> Finding:
    """Return what is to say of the tool's entry in ``plugins:``."""
    entries = [entry for entry in plugins if isinstance(entry, Mapping)] if isinstance(plugins, list) else []
    ours = [entry for entry in entries if entry.get("use") == TOOL_PATH]
    if not ours:
        if get_close_matches(TOOL_PATH, [str(entry.get("use")) for entry in entries], cutoff=0.8):
            return Finding("failed", "tool", f'an entry of plugins is misspelt, so it is not loaded; write - use: "{TOOL_PATH}"')
        if mode == "tool":
            return Finding("ok", "tool", "DeerFlow's own memory_search, memory_add, memory_update, memory_delete")
        return Finding("warning", "tool", f'nothing can be saved from a chat; add to plugins: - use: "{TOOL_PATH}"')
    enabled = [entry for entry in ours if is_true(entry.get("enabled", True))]
    if not enabled and mode != "tool":
        return Finding("warning", "tool", "nothing can be saved from a chat: the plugin is there but disabled; set enabled: true")
    if any(entry.get("config") for entry in enabled):
        return Finding("failed", "tool", "the plugin refuses settings in YAML; remove its config")
    if enabled and mode == "tool":
        return Finding("warning", "tool", "the plugin and mode tool give the model two ways to save; remove the plugin, or set memory.mode: middleware")
    return Finding("ok", "tool", ", ".join(f"`{tool}`" for tool in tools) or "configured")


def check_host(mode: str) -> Iterator[Finding]:
    """Yield whether this DeerFlow has what recall and the tools need of it; in mode tool it needs neither."""
    forwards = host_forwards_query()
    if mode == "tool":
        yield Finding("ok", "host", "forwards the query" if forwards else "forwards no query, so memory is searched for only when the model does")
        return
    yield Finding("ok" if forwards else "failed", "host", "forwards the query" if forwards else NO_QUERY)
    has_tools = find_spec("deerflow_extension_api") is not None and find_spec("deerflow_extension_api.plugins") is not None
    yield Finding("ok" if has_tools else "warning", "host", "has plugin tools" if has_tools else "this DeerFlow has no plugin tools, so there is no `remember`; update it (extension API 0.2.2)")
