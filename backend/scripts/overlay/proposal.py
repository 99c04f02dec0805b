"""What is left to do by hand in a checkout: the change of its config.yaml, shown and not made, and the next steps.

config.yaml is read as text, line by line, because nothing but the standard library may be needed here. What does not
look like the files that DeerFlow makes is not guessed at: then the lines to merge are shown.
"""

from __future__ import annotations

import difflib
import itertools
import re
from pathlib import Path

from checkout import Host

PLUGIN_PATH = "deerflow.agents.memory.backends.powercontext.remember_tool:install"
PLUGIN = f'- use: "{PLUGIN_PATH}"'
CHOSEN = re.compile(r"""\s*manager_class:\s*["']?powercontext["']?\s*(#|$)""")
# Settings of `memory:` that are the host's own, whatever the backend.
HOST_KEYS = {
    "enabled",
    "injection_enabled",
    "shutdown_flush_timeout_seconds",
    "manager_class",
    "mode",
    "backend_config",
}
# What may be a secret, written out: the value of a key, and who logs in at a URL. `$NAME` is only a variable's name.
SECRETS = (
    re.compile(r"""(?i)(\w*(?:key|token|secret|password|credentials?)["']?\s*:\s*)(?!\$|#|["']?\$|["']{2}|$)\S.*"""),
    re.compile(r"(://)[^/\s@]+(?=@)"),
)
LONGEST_RUN = 12
KEY = re.compile(r"""["']?([\w.-]+)["']?\s*:(?:\s|$)""")


def find_config(checkout: Path) -> Path | None:
    """Return the config.yaml that DeerFlow reads from its own checkout, or ``None`` if there is none yet."""
    return next((file for file in (checkout / "config.yaml", checkout / "backend/config.yaml") if file.is_file()), None)


def still_named(checkout: Path) -> list[str]:
    """Return what to say where config.yaml names a backend that is gone: DeerFlow's runs would end in errors."""
    config = find_config(checkout)
    lines = config.read_text(encoding="utf-8", errors="replace").splitlines() if config else []
    if not any(CHOSEN.match(line) or PLUGIN_PATH in line.partition("#")[0] for line in lines):
        return []
    remedy = "put back the `memory:` section it had, remove the plugin, and restart the Gateway"
    return [f"! {config} still names the backend: {remedy}."]


def settings_for(host: Host) -> str:
    """Return what config.yaml has to say for ``host``."""
    options = {"enabled": "true", "injection_enabled": "true"} | _wanted(host)
    block = "memory:\n" + "".join(f"  {key}: {value}\n" for key, value in options.items())
    return block + (f"\nplugins:\n  {PLUGIN}\n" if host.plugin_tools else "")


def proposed(text: str, host: Host) -> str | None:
    """Return config.yaml as it should be for ``host``, or ``None`` if it is not written as this can read it."""
    lines = text.splitlines()
    if "\t" in text or any(len(_starts(lines, name)) > 1 for name in ("memory", "plugins")):
        return None
    lines = _with_memory(lines, host)
    if host.plugin_tools and not any(PLUGIN_PATH in line.partition("#")[0] for line in lines):
        lines = _with_plugin(lines)
    return "\n".join(lines) + "\n"


def shown_diff(file: Path, text: str, then: str) -> list[str]:
    """Return the change as a diff to read: without the values of keys and tokens, and long removals in short."""
    names = (str(file), f"{file} (proposed)")
    lines = difflib.unified_diff(text.splitlines(), then.splitlines(), *names, n=1, lineterm="")
    shown: list[str] = []
    for removed, group in itertools.groupby(lines, lambda line: line.startswith("-") and not line.startswith("---")):
        run = list(group)
        if removed and len(run) > LONGEST_RUN:
            run = [*run[:4], f"-    ... and {len(run) - 5} lines more, to ...", run[-1]]
        shown += run
    for secret in SECRETS:
        shown = [secret.sub(r"\1<not shown>", line) for line in shown]
    return shown


def next_steps(checkout: Path, host: Host) -> list[str]:
    """Return what to do now in this checkout: numbered steps, the change of config.yaml before them."""
    shown, first = _configuring(checkout, host)
    folder = f'"{checkout}"' if " " in str(checkout) else str(checkout)
    python = "" if (checkout / "backend/.venv").exists() else " HOST_PYTHON=<the Python that DeerFlow runs with>"
    steps = [
        first,
        f"Set the Gateway's environment, for example in {checkout}/.env:\n"
        "     POWERCONTEXT_DEERFLOW_BASE_URL=https://powercontext.example.com   # http:// only on this machine\n"
        "     POWERCONTEXT_DEERFLOW_OWNER_USER_ID=<id of the signed-in user>\n"
        "     POWERCONTEXT_DEERFLOW_SCOPE_ID=<id of an existing PowerContext Scope>\n"
        "     POWERCONTEXT_DEERFLOW_TOKEN=<PowerContext's bearer token>",
        f"Look for mistakes, here: make doctor DEERFLOW={folder}{python}",
        "Restart the Gateway. The guide tells how, and all settings: docs/POWERCONTEXT.md",
        f"Run the backend's tests there: make test-host DEERFLOW={folder}{python}",
        f"Take everything out again, also before a `git pull` there: make unapply DEERFLOW={folder}",
    ]
    return [*shown, "", "Next:", *[f"  {number}. {step}" for number, step in enumerate(steps, 1)]]


def _configuring(checkout: Path, host: Host) -> tuple[list[str], str]:
    """Return what to show of config.yaml, and what to do with it."""
    config = find_config(checkout)
    block = settings_for(host).splitlines()
    if config is None:
        make = f"Make {checkout}/config.yaml (in DeerFlow: `make config`)"
        return block, f"{make}, and put the lines above into it; replace its `memory:` section."
    text = config.read_text(encoding="utf-8", errors="replace")
    then = proposed(text, host)
    if then is None:
        return block, f"Merge the lines above into {config}: replace its `memory:` section, add to `plugins:`."
    if then in (text, text + "\n"):
        return [], f"{config} needs no change."
    return shown_diff(config, text, then), f"Change {config} as shown above. It was not written to."


def _wanted(host: Host) -> dict[str, str]:
    return {"manager_class": "powercontext", "mode": host.mode, "backend_config": "{}"}


def _starts(lines: list[str], name: str) -> list[int]:
    return [number for number, line in enumerate(lines) if (match := KEY.match(line)) and match[1] == name]


def _end(lines: list[str], start: int) -> int:
    """Return where the block that starts at ``start`` ends: before the next key as far left and its comments."""
    indent = _indent(lines[start])
    end = start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        item = indent == 0 and line.startswith("- ")
        if line.strip() and not line.lstrip().startswith("#") and _indent(line) <= indent and not item:
            break
        if line.strip() and (not line.lstrip().startswith("#") or _indent(line) > indent):
            end = number + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _with_memory(lines: list[str], host: Host) -> list[str]:
    starts = _starts(lines, "memory")
    block = settings_for(host).partition("\n\n")[0].splitlines()
    if not starts:
        return [*lines, "", *block]
    start, end = starts[0], _end(lines, starts[0])
    inside = lines[start + 1 : end]
    children = [number for number, line in enumerate(inside) if KEY.match(line.strip())]
    if lines[start].partition("#")[0].strip() != "memory:" or not children:
        return [*lines[:start], *block, *lines[end:]]
    depth = _indent(inside[children[0]])
    wanted = {"enabled": "true", "injection_enabled": "true"} | _wanted(host)
    chosen = any(CHOSEN.match(line) for line in inside)
    return [*lines[: start + 1], *_changed(inside, depth, wanted, chosen=chosen), *lines[end:]]


def _changed(inside: list[str], depth: int, wanted: dict[str, str], *, chosen: bool) -> list[str]:
    """Return the lines of ``memory:`` with the wanted values and without another backend's options."""
    result, number, missing = [], 0, dict(wanted)
    while number < len(inside):
        match = KEY.match(inside[number].strip()) if _indent(inside[number]) == depth else None
        if match is None:
            result.append(inside[number])
            number += 1
            continue
        key, end = match[1], _end(inside, number)
        keeps = key not in wanted or (chosen and key == "backend_config") or _value(inside[number]) == wanted[key]
        if keeps and (key in HOST_KEYS or chosen):
            result += inside[number:end]
        elif key in wanted:
            result.append(f"{' ' * depth}{key}: {wanted[key]}")
        missing.pop(key, None)
        number = end
    return [*result, *[f"{' ' * depth}{key}: {missing[key]}" for key in ("manager_class", "mode") if key in missing]]


def _value(line: str) -> str:
    return line.partition(":")[2].partition(" #")[0].strip().strip("\"'")


def _with_plugin(lines: list[str]) -> list[str]:
    starts = _starts(lines, "plugins")
    if not starts:
        return [*lines, "", "plugins:", f"  {PLUGIN}"]
    start, end = starts[0], _end(lines, starts[0])
    items = [line for line in lines[start + 1 : end] if line.lstrip().startswith("- ")]
    if not items:
        return [*lines[:start], "plugins:", f"  {PLUGIN}", *lines[end:]]
    return [*lines[:end], f"{' ' * _indent(items[0])}{PLUGIN}", *lines[end:]]
