"""`make apply` and the DeerFlow it is given: which can use the backend, what will not work there, and what is left to do by hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from powercontext_support.overlay import API, BACKEND, CONTRACT, MANAGER, MEMORY, ROOT, SCRIPT, commit, git, run, snapshot, write

pytest_plugins = ("powercontext_support.overlay_fixtures",)
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")

AUGUST = {f"{MEMORY}/manager.py": CONTRACT.replace("        query: str | None = None,\n", ""), f"{API}/__init__.py": 'API_VERSION = "0.1.2"\n'}
PLUGIN = {"use": "deerflow.agents.memory.backends.powercontext.remember_tool:install"}
NO_QUERY = "! It hands backends no request"
NO_TOOLS = "! It has no plugin tools"
NEWER = "! Its extension API is newer than 0.2"


def august(checkout: Path) -> Path:
    """Make a checkout one of August 2026: no query, no plugin tools."""
    (checkout / API / "plugins.py").unlink(missing_ok=True)
    commit(checkout, AUGUST)
    return checkout


def proposed(output: str, config: str) -> str:
    """Return ``config`` with the shown diff made, as somebody who follows it does."""
    lines, moved, at = config.splitlines(), 0, 0
    for line in output[output.index("\n--- ") + 1 : output.index("\n\nNext:")].splitlines()[2:]:
        if line.startswith("@@"):
            start, _, length = line.split()[1].lstrip("-").partition(",")
            at = int(start) - (length != "0") + moved
        elif line.startswith("+"):
            lines.insert(at, line[1:])
            at, moved = at + 1, moved + 1
        else:
            assert lines[at] == line[1:]
            if line.startswith("-"):
                del lines[at]
                moved -= 1
            else:
                at += 1
    return "\n".join(lines) + "\n"


def test_what_it_is_stands_in_the_first_line(project: Path, checkout: Path) -> None:
    assert run(project, "apply", checkout).startswith(f"{checkout}: DeerFlow 2.2.0, extension API 0.2.3.\n")


def test_a_deerflow_of_autumn_2026_has_all_it_needs(project: Path, checkout: Path) -> None:
    output = run(project, "apply", checkout)
    assert "\n!" not in output
    assert "  mode: middleware\n" in output


def test_a_deerflow_of_august_is_told_what_will_not_work(project: Path, checkout: Path) -> None:
    output = run(project, "apply", august(checkout))
    assert output.index(NO_QUERY) < output.index(NO_TOOLS) < output.index("Files: ")
    assert "use `mode: tool`, or update DeerFlow" in output
    assert "so no `remember`, `recall`" in output


def test_what_will_not_work_is_said_before_anything_is_written(project: Path, checkout: Path) -> None:
    write(august(checkout), [MANAGER], "theirs\n")
    before = snapshot(checkout)
    output = run(project, "apply", checkout, code=1)
    assert NO_QUERY in output
    assert "Nothing was changed" in output
    assert snapshot(checkout) == before


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.1.2", [NO_TOOLS]), ("0.2.1", [NO_TOOLS]), ("0.2.2", []), ("0.2.14", []), ("0.3.0", [NEWER]), ("1.0.0", [NEWER]), ("2", [NEWER])],
)
def test_the_extension_api_decides_about_the_tools(version: str, said: list[str], project: Path, checkout: Path) -> None:
    commit(checkout, {f"{API}/__init__.py": f'API_VERSION = "{version}"\n'})
    output = run(project, "apply", checkout, "--dry-run")
    assert [line for line in (NO_QUERY, NO_TOOLS, NEWER) if line in output] == said


def test_a_deerflow_without_extensions_has_no_tools(project: Path, checkout: Path) -> None:
    shutil.rmtree(checkout / API)
    output = run(project, "apply", checkout)
    assert "extension API none." in output
    assert NO_TOOLS in output
    assert "plugins:" not in output


@pytest.mark.parametrize(
    ("name", "why"),
    [("nowhere", "does not exist"), ("empty", "has no backend/packages/harness/pyproject.toml"), ("deer flow/backend", "has no backend/"), ("project", "has no backend/")],
)
@pytest.mark.parametrize("command", ["apply", "unapply"])
def test_what_is_not_a_deerflow_checkout_is_refused(command: str, name: str, why: str, project: Path, checkout: Path) -> None:
    (checkout.parent / "empty").mkdir()
    output = run(project, command, checkout.parent / name, code=2)
    assert why in output
    assert "the top folder of a DeerFlow checkout" in output


def test_a_deerflow_without_memory_backends_is_too_old(project: Path, checkout: Path) -> None:
    shutil.rmtree(checkout / MEMORY)
    before = snapshot(checkout)
    assert "It is too old" in run(project, "apply", checkout, code=2)
    assert snapshot(checkout) == before


@pytest.mark.parametrize("contract", ["class MemoryBackend: ...\n", CONTRACT.replace("from_config", "build"), CONTRACT.replace("def get_context", "def recall"), CONTRACT.replace("Error", "Fault")])
def test_another_memory_contract_is_refused(contract: str, project: Path, checkout: Path) -> None:
    commit(checkout, {f"{MEMORY}/manager.py": contract})
    before = snapshot(checkout)
    assert "another contract for memory backends" in run(project, "apply", checkout, code=2)
    assert snapshot(checkout) == before


def test_unapply_works_whatever_became_of_the_checkout(project: Path, checkout: Path) -> None:
    run(project, "apply", checkout)
    commit(checkout, {f"{MEMORY}/manager.py": "class MemoryBackend: ...\n"})
    run(project, "unapply", checkout)
    assert not (checkout / BACKEND).exists()


def test_unapply_warns_where_config_yaml_still_selects_the_backend(project: Path, checkout: Path) -> None:
    write(checkout, {"config.yaml": f"memory:\n  manager_class: powercontext\nplugins:\n  - use: {PLUGIN['use']}\n"})
    run(project, "apply", checkout)
    assert f"! {checkout}/config.yaml still names the backend" in run(project, "unapply", checkout)
    write(checkout, {"config.yaml": "memory:\n  manager_class: deermem # or powercontext\n  # manager_class: powercontext\n"})
    run(project, "apply", checkout)
    assert "still names" not in run(project, "unapply", checkout)


def test_without_a_config_yaml_it_says_how_to_make_one_and_what_belongs_into_it(project: Path, checkout: Path) -> None:
    (checkout / "config.yaml").unlink()
    output = run(project, "apply", checkout)
    block = output[output.index("\nmemory:\n") : output.index("\nNext:")]
    memory = {"enabled": True, "injection_enabled": True, "manager_class": "powercontext", "mode": "middleware", "backend_config": {}}
    assert yaml.safe_load(block) == {"memory": memory, "plugins": [PLUGIN]}
    assert f"1. Make {checkout}/config.yaml (in DeerFlow: `make config`)" in output


def test_the_steps_are_numbered_and_about_this_checkout(project: Path, checkout: Path) -> None:
    output = run(project, "apply", checkout)
    assert [line[2:5] for line in output.splitlines() if line[:2] == "  " and line[3:5] == ". "] == ["1. ", "2. ", "3. ", "4. ", "5. ", "6. "]
    for name in ("BASE_URL", "OWNER_USER_ID", "SCOPE_ID", "TOKEN"):
        assert f"\n     POWERCONTEXT_DEERFLOW_{name}=" in output
    assert f'make doctor DEERFLOW="{checkout}" HOST_PYTHON=<the Python that DeerFlow runs with>\n' in output
    (checkout / "backend/.venv").mkdir()
    assert f'make doctor DEERFLOW="{checkout}"\n' in run(project, "apply", checkout)


AS_DEERFLOW_MAKES_IT = """\
log_level: info # memory: no
memory:
  enabled: true
  # A comment that stays.
  shutdown_flush_timeout_seconds: 30.0
  manager_class: deermem
  mode: middleware
  # backend_config:
  #   base_url: x
  backend_config:
    storage_path: ""   # empty
    model:
      # api_key: $KEY
    nested:
      - a

    max_facts: 100

# ===
# Title
# ===
title:
  enabled: true
"""
CONFIGS = {
    AS_DEERFLOW_MAKES_IT: {
        "log_level": "info",
        "memory": {"enabled": True, "shutdown_flush_timeout_seconds": 30.0, "manager_class": "powercontext", "mode": "middleware", "backend_config": {}},
        "title": {"enabled": True},
        "plugins": [PLUGIN],
    },
    "memory:\n    enabled: false\n    max_facts: 5\n    mode: tool\n    token_counting: char\nlast: 1\n": {
        "memory": {"enabled": True, "manager_class": "powercontext", "mode": "middleware"},
        "last": 1,
        "plugins": [PLUGIN],
    },
    "memory: {}\nplugins: []\n": {
        "memory": {"enabled": True, "injection_enabled": True, "manager_class": "powercontext", "mode": "middleware", "backend_config": {}},
        "plugins": [PLUGIN],
    },
    "": {
        "memory": {"enabled": True, "injection_enabled": True, "manager_class": "powercontext", "mode": "middleware", "backend_config": {}},
        "plugins": [PLUGIN],
    },
    "memory:\n  manager_class: mem0\n  backend_config: {api_key_env: X}\n\nplugins:\n- use: other:install\n  config:\n    a: 1\nlast: 1\n": {
        "memory": {"manager_class": "powercontext", "mode": "middleware", "backend_config": {}},
        "plugins": [{"use": "other:install", "config": {"a": 1}}, PLUGIN],
        "last": 1,
    },
    'plugins:\n  - use: "other:install"\n    required: true\n\n# memory:\n#   x\n': {
        "memory": {"enabled": True, "injection_enabled": True, "manager_class": "powercontext", "mode": "middleware", "backend_config": {}},
        "plugins": [{"use": "other:install", "required": True}, PLUGIN],
    },
    "memory:\n  manager_class: powercontext\n  mode: middleware\n  backend_config: {failure_policy: {read: fail_closed}}\n": {
        "memory": {"manager_class": "powercontext", "mode": "middleware", "backend_config": {"failure_policy": {"read": "fail_closed"}}},
        "plugins": [PLUGIN],
    },
}


@pytest.mark.parametrize(("text", "expected"), CONFIGS.items())
def test_the_proposed_config_yaml_switches_to_the_backend_and_keeps_the_rest(text: str, expected: dict[str, object], project: Path, checkout: Path) -> None:
    write(checkout, {"config.yaml": text})
    assert yaml.safe_load(proposed(run(project, "apply", checkout), text)) == expected
    assert (checkout / "config.yaml").read_text() == text


def test_for_a_deerflow_of_august_mode_tool_is_proposed_and_no_plugin(project: Path, checkout: Path) -> None:
    write(august(checkout), {"config.yaml": AS_DEERFLOW_MAKES_IT})
    then = proposed(run(project, "apply", checkout), AS_DEERFLOW_MAKES_IT)
    assert yaml.safe_load(then) == {
        "log_level": "info",
        "memory": {"enabled": True, "shutdown_flush_timeout_seconds": 30.0, "manager_class": "powercontext", "mode": "tool", "backend_config": {}},
        "title": {"enabled": True},
    }
    assert "  # A comment that stays.\n" in then


@pytest.mark.parametrize("policy", ["{}", "{failure_policy: {read: fail_closed}}", "\n    failure_policy:\n      read: fail_closed"])
def test_a_config_yaml_that_is_right_needs_no_change(policy: str, project: Path, checkout: Path) -> None:
    write(checkout, {"config.yaml": f"memory:\n  manager_class: powercontext # ours\n  mode: middleware\n  backend_config: {policy}\nplugins:\n  - use: {PLUGIN['use']}\n"})
    assert f"1. {checkout}/config.yaml needs no change." in run(project, "apply", checkout)


def test_the_older_place_of_config_yaml_is_found(project: Path, checkout: Path) -> None:
    (checkout / "config.yaml").rename(checkout / "backend/config.yaml")
    assert f"1. Change {checkout}/backend/config.yaml as shown above. It was not written to." in run(project, "apply", checkout)


@pytest.mark.parametrize("text", ["memory:\n  a: 1\nmemory:\n  b: 1\n", "memory:\n\tmode: tool\n"])
def test_a_config_yaml_that_cannot_be_read_is_not_guessed_at(text: str, project: Path, checkout: Path) -> None:
    write(checkout, {"config.yaml": text})
    output = run(project, "apply", checkout)
    assert f"1. Merge the lines above into {checkout}/config.yaml" in output
    assert "\nmemory:\n  enabled: true\n" in output


def test_keys_and_tokens_of_config_yaml_are_not_shown(project: Path, checkout: Path) -> None:
    secrets = "    api_key: sk-canary\n    token: 'canary'\n    client_secret: \"canary\"\n    model: {api_key: canary}\n    db_password: canary # canary\n    url: https://canary:canary@host/\n    other_key: $NAMED\n"
    write(checkout, {"config.yaml": f"memory:\n  api_key: canary\n  backend_config:\n{secrets}"})
    output = run(project, "apply", checkout)
    assert "canary" not in output
    assert "-    api_key: <not shown>" in output
    assert "-    other_key: $NAMED" in output


def test_a_long_removal_is_shown_in_short(project: Path, checkout: Path) -> None:
    options = "".join(f"    option_{number}: {number}\n" for number in range(90))
    write(checkout, {"config.yaml": f"memory:\n  manager_class: deermem\n  backend_config:\n{options}"})
    output = run(project, "apply", checkout)
    assert "-    option_1: 1\n-    ... and 87 lines more, to ...\n-    option_89: 89\n+  manager_class: powercontext\n" in output


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("make") is None, reason="no bash or make here")
@pytest.mark.parametrize("lines", [0, 1, 3])
def test_apply_does_all_of_it_also_when_nobody_reads_the_rest(lines: int, checkout: Path) -> None:
    command = f'set -o pipefail; make --silent -C "{ROOT}" apply DEERFLOW="{checkout}" PYTHON="{sys.executable}" | head -{lines}'
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", lines)
    assert (checkout / BACKEND / "transport/exchange.py").exists()
    assert "Nothing to do" in run(ROOT, "apply", checkout)
    run(ROOT, "unapply", checkout)
    assert git(checkout, "status", "--porcelain") == ""


def test_paths_that_the_terminal_cannot_show_stop_nothing(project: Path, checkout: Path, tmp_path: Path) -> None:
    checkout.rename(tmp_path / "鹿")
    run(project, "apply", tmp_path / "鹿", PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0")
    assert (tmp_path / "鹿" / MANAGER).exists()


def test_the_command_runs_without_anything_installed(project: Path, checkout: Path) -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(project / SCRIPT), "apply", str(checkout)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
