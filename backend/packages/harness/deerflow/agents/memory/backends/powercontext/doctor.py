"""Diagnosis for operators: ``python -m deerflow.agents.memory.backends.powercontext.doctor``. It changes nothing, here or on the server.

Run it with the environment of the Gateway's process (in Docker: inside the Gateway's container). It shows no token,
user, Scope or memory. Exit code 0: nothing failed; 1: something failed; 2: it could not run.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .client import PowerContextClient
from .config import PowerContextSettings, load_settings
from .deadline import Deadline
from .diagnostics import Finding, check_server, remedy_for, settings_warnings, sign_in_problem
from .errors import PowerContextConfigurationError, PowerContextError
from .host import NO_QUERY, host_forwards_query
from .yaml_config import parse_backend_config

TOOL_PATH = "deerflow.agents.memory.backends.powercontext.remember_tool:install"


def check_environment() -> tuple[PowerContextSettings | None, list[Finding]]:
    """Return the settings, if they are good, and what is to say of the environment."""
    findings = []
    if problem := sign_in_problem():
        findings.append(Finding("failed", "sign-in", problem))
    try:
        settings = load_settings()
    except PowerContextConfigurationError as error:
        return None, [*findings, *(Finding("failed", "settings", line.removeprefix("- ")) for line in str(error).splitlines()[1:])]
    findings.append(Finding("ok", "settings", "complete"))
    findings += [Finding("warning", "settings", warning) for warning in settings_warnings(settings)]
    return settings, findings


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


def check_recall(client: PowerContextClient, settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield whether the query fits how the server searches, and how long a recall takes."""
    [binding, *_] = settings.people.bindings
    limit = settings.recall_timeout_seconds
    try:
        modes = client.get_capabilities(binding, deadline=Deadline.after(limit)).search_modes
        yield check_search(modes, settings)
        started = time.monotonic()
        client.prepare_context(binding, "powercontext doctor", deadline=Deadline.after(limit))
        yield Finding("ok", "recall", f"{(time.monotonic() - started) * 1000:.0f} ms of {limit * 1000:.0f} ms")
    except PowerContextError as error:
        yield Finding("failed", "server", remedy_for(error))


def check_search(modes: Collection[str], settings: PowerContextSettings) -> Finding:
    """Return whether the query fits how the server searches."""
    if {"vector", "hybrid"} & set(modes) and settings.recall_query == "focused":
        return Finding("warning", "query", "this server searches vectors, which work better on whole requests; set POWERCONTEXT_DEERFLOW_RECALL_QUERY=full")
    if not {"vector", "hybrid"} & set(modes) and settings.recall_query == "full":
        return Finding("warning", "query", "this server searches words, and a whole request hides them; remove POWERCONTEXT_DEERFLOW_RECALL_QUERY")
    return Finding("ok", "query", settings.recall_query)


def check_service(settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield what the server says, question by question, until one fails."""
    client = PowerContextClient(settings)
    [binding, *_] = settings.people.bindings
    try:
        findings = list(check_server(client, binding, Deadline.after(3 * settings.recall_timeout_seconds)))
        yield from findings
        if not any(finding.status == "failed" for finding in findings):
            yield from check_recall(client, settings)
    finally:
        client.close()


def diagnose(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield all findings, in the order in which they are best mended."""
    settings, findings = check_environment()
    yield from findings
    yield from check_config(config)
    yield from check_host()
    if settings is None:
        yield Finding("warning", "server", "not asked: the settings come first")
        return
    yield from check_service(settings)


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


def main(arguments: list[str] | None = None) -> int:
    """Print the diagnosis and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m deerflow.agents.memory.backends.powercontext.doctor", description="Diagnose PowerContext memory, in the environment of DeerFlow's Gateway. Nothing is changed; no token, user, Scope or memory is shown."
    )
    parser.add_argument("--config", type=Path, default=Path(os.environ.get("DEER_FLOW_CONFIG_PATH", "config.yaml")), help="DeerFlow's config.yaml")
    parser.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a remedy may have signs that the terminal has not
    try:
        config = read_config(options.config)
    except (PowerContextConfigurationError, ImportError) as error:
        print(f"The doctor cannot run: {error}", file=sys.stderr)
        return 2
    findings = []
    for finding in diagnose(config):
        findings.append(finding)
        if not options.json:
            print(finding, flush=True)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    return 1 if any(finding.status == "failed" for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
