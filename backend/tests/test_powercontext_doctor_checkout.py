"""The doctor in a DeerFlow checkout: which files it reads, what DeerFlow makes of them, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from powercontext_support import OWNER, SCOPE, SET_UP, TOKEN, RunDoctor, StartHTTP
from powercontext_support.real_server import RealServer, find_executable
from powercontext_support.replies import ATOMIC_SEARCH, PREPARE, READINESS, Reply, answer, prepared

from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main
from deerflow.agents.memory.backends.powercontext.host import host_forwards_query, host_has_plugin_tools

if TYPE_CHECKING:
    from werkzeug import Request

pytest_plugins = ("powercontext_support.fixtures", "powercontext_support.doctor_fixtures")


def test_a_checkout_alone_is_enough(run: RunDoctor, checkout: Path, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("checkout")
    (checkout / ".env").write_text(
        "# comment\n"
        f'POWERCONTEXT_DEERFLOW_BASE_URL="{powercontext_server.base_url}"\n'
        f"export POWERCONTEXT_DEERFLOW_OWNER_USER_ID='{OWNER}'  # the owner\n"
        f"MY_SCOPE={scope}\nPOWERCONTEXT_DEERFLOW_SCOPE_ID=$MY_SCOPE\n"
        f"POWERCONTEXT_DEERFLOW_TOKEN={powercontext_server.token}"
    )
    status, output = run("--deerflow", checkout)
    assert f"Files: {checkout / '.env'}, {checkout / 'config.yaml'}" in output
    for line in ("ok       settings    complete", "ok       memory      manager_class powercontext", "ok       binding     the token is accepted and the Scope is there"):
        assert line in output
    assert status == (0 if host_forwards_query() else 1)


def test_a_folder_that_is_no_checkout_is_named(run: RunDoctor, tmp_path: Path) -> None:
    assert run("--deerflow", tmp_path) == (2, f"The doctor cannot run: {tmp_path} is not the top folder of a DeerFlow checkout; name that with --deerflow (make doctor: DEERFLOW=)\n")


@pytest.mark.parametrize("truth", ['"true"', "1", "yes", '"on"', "true"])
def test_what_deerflow_takes_for_true_is_true(truth: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / "config.yaml").write_text(SET_UP.replace("powercontext}", f"powercontext, enabled: {truth}, injection_enabled: {truth}}}"))
    assert "ok       memory      manager_class powercontext, recall on" in run("--deerflow", checkout)[1]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("powercontext}", "powercontext, enabled: maybe}"), "failed   memory      memory.enabled is neither true nor false, so DeerFlow does not start"),
        (("powercontext}", "powercontext, enabled: 0}"), "failed   memory      there is no recall"),
        (("powercontext}", "power-context}"), "failed   memory      memory.manager_class is misspelt; set it to powercontext"),
        (("powercontext}", "PowerContext}"), "failed   memory      memory.manager_class is misspelt; set it to powercontext"),
        (("powercontext}", "mem0}"), "failed   memory      another backend is configured"),
        (("powercontext}", "$MEMORY_BACKEND}"), "failed   config      $MEMORY_BACKEND is in config.yaml and not set, so DeerFlow does not start"),
        pytest.param(
            ("remember_tool:install", "remember_tools:install"),
            "failed   tool        an entry of plugins is misspelt",
            marks=pytest.mark.skipif(not host_has_plugin_tools(), reason="this host has no plugin tools, and is told so"),
        ),
    ],
    ids=str,
)
def test_a_slip_in_the_configuration_is_named(change: tuple[str, str], line: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / "config.yaml").write_text(SET_UP.replace(*change))
    status, output = run("--deerflow", checkout)
    assert line in output
    assert status == 1


def test_variables_in_the_configuration_are_resolved(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_text("BACKEND=powercontext\n")
    (checkout / "config.yaml").write_text(SET_UP.replace("powercontext}", "$BACKEND}"))
    assert "ok       memory      manager_class powercontext" in run("--deerflow", checkout)[1]


def test_a_misspelt_variable_gets_the_one_that_was_meant(run: RunDoctor, checkout: Path) -> None:
    output = run("--deerflow", checkout, scope="scp_1")[1]
    assert "POWERCONTEXT_DEERFLOW_SCOPE is not a setting of this backend; did you mean POWERCONTEXT_DEERFLOW_SCOPE_ID?" in output


def test_control_signs_of_names_are_printed_harmlessly(run: RunDoctor, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERCONTEXT_DEERFLOW_\x1b[31mX", "1")
    output = run("--deerflow", checkout)[1]
    assert "POWERCONTEXT_DEERFLOW_?[31mX is not a setting" in output
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("memory: {\n  x: [1,\n", "is not valid YAML, at line 3, column 1"),
        ("a: 1\n b: 2\n", "is not valid YAML, at line 2, column 3"),
        ("\x00", "is not valid YAML"),
        ("- a\n", "is not a mapping"),
    ],
)
def test_an_error_in_yaml_has_its_place(content: str, problem: str, run: RunDoctor, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(content)
    assert run("--config", tmp_path / "config.yaml") == (2, f"The doctor cannot run: {tmp_path}/config.yaml {problem}; correct it there, or name another with --config (make doctor: CONFIG=)\n")


def test_what_is_no_file_ends_at_once(run: RunDoctor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    remedies = {"is not a file": "name DeerFlow's config.yaml", "is not there": "make it with DeerFlow's own `make config`, or name another"}
    for path, problem in ((tmp_path / "pipe", "is not a file"), (tmp_path, "is not a file"), (tmp_path / "none", "is not there")):
        assert run("--config", path) == (2, f"The doctor cannot run: {path} {problem}; {remedies[problem]} with --config (make doctor: CONFIG=)\n")


def healthy(request: Request) -> Reply:
    """Answer like a PowerContext 1.4.1 without authentication."""
    answers = {
        READINESS: {"status": "ready"},
        "/v1/server-info": {"product": "powercontext", "package_version": "1.4.1"},
        ATOMIC_SEARCH: {"results": []},
        PREPARE: prepared("Refunds are in cents."),
    }
    return answer(answers.get(request.path, {"scope_id": SCOPE}))


def test_a_recall_that_takes_more_than_half_of_its_limit_is_warned_of(run: RunDoctor, checkout: Path, powercontext_http: StartHTTP) -> None:
    def slow(request: Request) -> Reply:
        if request.path == PREPARE:
            time.sleep(1.5)
        return healthy(request)

    server = powercontext_http()
    server.decide(None, slow)
    output = run("--deerflow", checkout, base_url=server.base_url, owner_user_id=OWNER, scope_id=SCOPE, recall_timeout_seconds="2.5")[1]
    [line] = [line for line in output.splitlines() if " recall " in line and "memory " not in line]
    assert line.startswith("warning  recall")


def test_a_token_that_nobody_checks_is_told_of(run: RunDoctor, checkout: Path, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.decide(None, healthy)
    good = {"base_url": server.base_url, "owner_user_id": OWNER, "scope_id": SCOPE}
    output = run("--deerflow", checkout, token=TOKEN, **good)[1]
    [line] = [line for line in output.splitlines() if " binding " in line]
    assert line.startswith("warning  binding     the Scope is there, but the server checks no token (its authentication is off): whoever reaches it can")
    assert line.endswith("; start it with POWERCONTEXT_SERVER_AUTH_ENABLED=true and POWERCONTEXT_SERVER_AUTH_TOKEN=<the token>")
    output = run("--deerflow", checkout, **good)[1]
    assert "ok       binding     the Scope is there; the server asks for no token" in output


def test_a_token_that_is_demanded_and_missing_is_told_of(run: RunDoctor, checkout: Path, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("demanded")
    status, output = run("--deerflow", checkout, base_url=powercontext_server.base_url, owner_user_id=OWNER, scope_id=scope)
    assert "failed   server      PowerContext demands a token: set POWERCONTEXT_DEERFLOW_TOKEN" in output
    assert status == 1


@pytest.mark.skipif(find_executable() is None, reason="there is no powercontext command")
def test_the_scopes_that_are_there_are_shown_by_the_command_that_is_printed(run: RunDoctor, checkout: Path, powercontext_server: RealServer) -> None:
    scope = powercontext_server.create_scope("the one that was meant")
    status, output = run("--deerflow", checkout, base_url=powercontext_server.base_url, owner_user_id=OWNER, scope_id="scp_of_another", token=powercontext_server.token)
    assert status == 1
    [line] = [line for line in output.splitlines() if "PowerContext has no such Scope" in line]
    command = line.partition("where the Gateway's variables are set: ")[2]
    path = f"{Path(str(find_executable())).parent}{os.pathsep}{os.environ['PATH']}"
    shown = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True, env=os.environ | {"PATH": path}).stdout
    assert scope in shown


def test_the_last_line_says_it_all(run: RunDoctor, checkout: Path) -> None:
    output = run("--config", checkout / "config.yaml")[1]
    count = sum(line.startswith("failed") for line in output.splitlines())
    assert count > 1
    assert output.splitlines()[-1] == f"{count} problems. Start with the first, then restart the Gateway."


def test_help_has_the_statuses_and_the_variables(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    output = capsys.readouterr().out
    for words in ("exit status:", "0  nothing failed", "POWERCONTEXT_DEERFLOW_BASE_URL", "DEER_FLOW_CONFIG_PATH"):
        assert words in output


def doctor_process(config: Path, **settings: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POWERCONTEXT_")} | settings
    environment["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    command = [sys.executable, "-m", "deerflow.agents.memory.backends.powercontext.doctor", "--config", str(config)]
    # A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit that.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen)


def test_who_reads_only_the_first_line_gets_no_traceback(checkout: Path) -> None:
    with doctor_process(checkout / "config.yaml") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


def test_an_interrupt_ends_in_one_line(checkout: Path, powercontext_http: StartHTTP) -> None:
    asked, done = threading.Event(), threading.Event()

    def hold(request: object) -> Reply:
        asked.set()
        done.wait(60)
        return answer({"status": "ready"})

    server = powercontext_http()
    server.decide(None, hold)
    settings = {"BASE_URL": server.base_url, "OWNER_USER_ID": OWNER, "SCOPE_ID": SCOPE, "RECALL_TIMEOUT_SECONDS": "4"}
    with doctor_process(checkout / "config.yaml", **{f"POWERCONTEXT_DEERFLOW_{name}": value for name, value in settings.items()}) as process:
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        done.set()
    assert errors == "Interrupted.\n"
    assert process.returncode == 130


def test_findings_as_json_are_a_list_and_nothing_else(run: RunDoctor, checkout: Path) -> None:
    findings = json.loads(run("--config", checkout / "config.yaml", "--json")[1])
    assert {tuple(finding) for finding in findings} == {("status", "what", "detail")}
