"""What is to be said of DeerFlow: its config.yaml, and what it can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ..diagnostics import Finding
from ..errors import PowerContextConfigurationError
from ..host import NO_QUERY, host_forwards_query, host_has_plugin_tools
from ..settings.yaml_config import parse_backend_config
from .config_file import is_true, resolved

TOOL_PATH = "deerflow.agents.memory.backends.powercontext.remember_tool:install"
_CLASS = "deerflow.agents.memory.backends.powercontext.manager{}PowerContextMemoryManager"
NAMES = ("powercontext", _CLASS.format("."), _CLASS.format(":"))
"""What DeerFlow takes for this backend in ``manager_class``."""


def check_config(config: Mapping[str, Any], tools: Sequence[str]) -> Iterator[Finding]:
    """Yield what is to say of DeerFlow's config.yaml; ``tools`` are those the settings ask for."""
    try:
        memory, plugins = resolved(config.get("memory")), resolved(config.get("plugins"))
    except PowerContextConfigurationError as error:
        yield Finding("failed", "config", str(error))
        return
    try:
        resolved(config)
    except PowerContextConfigurationError as error:
        yield Finding("failed", "config", str(error))
    if not isinstance(memory, Mapping):
        yield Finding("failed", "memory", _no_section(config))
        return
    yield _check_memory(memory)
    try:
        parse_backend_config(memory.get("backend_config"))
    except PowerContextConfigurationError as error:
        yield from (Finding("failed", "memory", line.removeprefix("- ")) for line in str(error).splitlines() if line.startswith("- "))
    if (mode := mode_of(config)) is not None:
        yield check_plugin(plugins, tools, mode=mode)


def mode_of(config: Mapping[str, Any]) -> str | None:
    """Return ``memory.mode``; ``None`` if there is no such mode, or no memory section."""
    try:
        memory = resolved(config.get("memory"))
    except PowerContextConfigurationError:
        return None
    mode = memory.get("mode", "middleware") if isinstance(memory, Mapping) else None
    return mode if mode in ("middleware", "tool") else None


def best_mode() -> str:
    """Return the mode in which this DeerFlow can do most."""
    return "middleware" if host_forwards_query() and host_has_plugin_tools() else "tool"


def _no_section(config: Mapping[str, Any]) -> str:
    if "memory" in config:
        return "memory is not a mapping, so DeerFlow does not start; write it as in config.example.yaml"
    meant = get_close_matches("memory", [key for key in config if isinstance(key, str)], n=1, cutoff=0.7) or [key for key in config if str(key).lower() == "memory"]
    slip = f", but {meant[0]} is: rename it" if meant else f": add memory: {{manager_class: powercontext, mode: {best_mode()}}}"
    return f"memory is not in config.yaml{slip}"


def _check_memory(memory: Mapping[str, Any]) -> Finding:
    manager_class, mode = memory.get("manager_class"), memory.get("mode", "middleware")
    switches = {name: is_true(memory.get(name, True)) for name in ("enabled", "injection_enabled")}
    if manager_class not in NAMES:
        return Finding("failed", "memory", _other_backend(memory))
    if None in switches.values():
        names = " and ".join(f"memory.{name}" for name, value in switches.items() if value is None)
        return Finding(
            "failed",
            "memory",
            f"{names} is neither true nor false, so DeerFlow does not start; set it to true",
        )
    if False in switches.values():
        names = " and ".join(f"memory.{name}" for name, value in switches.items() if value is False)
        return Finding("failed", "memory", f"there is no recall; set {names} to true (the tools do not depend on it)")
    if mode not in ("middleware", "tool"):
        return Finding(
            "failed",
            "memory",
            f"there is no such mode, so DeerFlow does not start; set memory.mode: {best_mode()}",
        )
    return Finding(
        "ok",
        "memory",
        "manager_class powercontext, recall on" + (", DeerFlow's own memory tools" if mode == "tool" else ""),
    )


def _other_backend(memory: Mapping[str, Any]) -> str:
    if "manager_class" not in memory:
        meant = get_close_matches("manager_class", [str(key) for key in memory], n=1, cutoff=0.8)
        slip = f"; {meant[0]} is: rename it" if meant else ", so DeerFlow's own memory is used; add memory.manager_class: powercontext"
        return f"memory.manager_class is not there{slip}"
    if get_close_matches(str(memory["manager_class"]).lower(), ["powercontext"], cutoff=0.7):
        return "memory.manager_class is misspelt; set it to powercontext"
    return "another backend is configured; set memory.manager_class: powercontext"


def check_plugin(plugins: Any, tools: Sequence[str], *, mode: str) -> Finding:
    """Return what is to say of the tool's entry in ``plugins:``."""
    listed = [] if plugins is None else plugins
    if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
        return Finding(
            "failed",
            "tool",
            f'plugins is not a list of entries with use, so DeerFlow does not start; write - use: "{TOOL_PATH}"',
        )
    ours = [entry for entry in listed if entry.get("use") == TOOL_PATH]
    enabled = [entry for entry in ours if is_true(entry.get("enabled", True))]
    misspelt = not ours and bool(get_close_matches(TOOL_PATH, [str(entry.get("use")) for entry in listed], cutoff=0.8))
    if mode == "tool" or not host_has_plugin_tools():
        return _without_plugin(mode, there=misspelt or bool(enabled))
    if misspelt:
        return Finding(
            "failed",
            "tool",
            f'an entry of plugins is misspelt, so it is not loaded; write - use: "{TOOL_PATH}"',
        )
    if not ours:
        return Finding("warning", "tool", f'nothing can be saved from a chat; add to plugins: - use: "{TOOL_PATH}"')
    if not enabled:
        return Finding(
            "warning",
            "tool",
            "nothing can be saved from a chat: the plugin is there but disabled; set enabled: true",
        )
    if any(entry.get("config") for entry in enabled):
        return Finding("failed", "tool", "the plugin refuses settings in YAML; remove its config")
    return Finding("ok", "tool", ", ".join(f"`{tool}`" for tool in tools) or "configured")


def _without_plugin(mode: str, *, there: bool) -> Finding:
    """Return what is to say where the plugin has no place: in mode tool, or in a DeerFlow that cannot use it."""
    if mode == "tool" and there:
        other = ", or set memory.mode: middleware" if best_mode() == "middleware" else ""
        return Finding(
            "warning",
            "tool",
            f"the plugin and mode tool give the model two ways to save; take the plugin out of plugins{other}",
        )
    if mode == "tool":
        return Finding("ok", "tool", "DeerFlow's own memory_search, memory_add, memory_update, memory_delete")
    cause = "nothing can be saved from a chat: this DeerFlow has no plugin tools (extension API 0.2.2)"
    return Finding(
        "warning",
        "tool",
        f"{cause}; set memory.mode: tool{', and take the plugin out of plugins' if there else ''}",
    )


def check_host(mode: str | None) -> Iterator[Finding]:
    """Yield whether this DeerFlow has what recall and the tools need of it; in mode tool it needs neither."""
    forwards = host_forwards_query()
    if mode == "tool":
        yield Finding(
            "ok",
            "host",
            "forwards the query" if forwards else "forwards no query, so memory is searched for only when the model does",
        )
    elif mode is not None:
        yield Finding("ok" if forwards else "failed", "host", "forwards the query" if forwards else NO_QUERY)
        if host_has_plugin_tools():
            yield Finding("ok", "host", "has plugin tools")
