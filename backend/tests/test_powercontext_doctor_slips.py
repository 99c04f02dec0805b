"""What an operator writes wrongly into a checkout's `.env` and config.yaml: one cause each, and a remedy for this DeerFlow."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, TOOL, RunDoctor

from deerflow.agents.memory.backends.powercontext.doctor.host_checks import best_mode, check_plugin
from deerflow.agents.memory.backends.powercontext.host import host_has_plugin_tools

pytest_plugins = ("powercontext_support.fixtures", "powercontext_support.doctor_fixtures")
pytest.importorskip("yaml")

CLASS = "deerflow.agents.memory.backends.powercontext.manager"
GOOD = "memory: {manager_class: powercontext, mode: tool}\n"
PREFIX = "POWERCONTEXT_DEERFLOW_"
SETTINGS = f"{PREFIX}BASE_URL=http://127.0.0.1:9\n{PREFIX}OWNER_USER_ID={OWNER}\n{PREFIX}SCOPE_ID={SCOPE}\n{PREFIX}TOKEN={TOKEN}\n"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (SETTINGS.replace("=", " = "), " at line 1"),
        (SETTINGS.replace("SCOPE_ID=", "SCOPE_ID= "), " at line 3"),
        (f"TITLE=The {TOKEN}\n" + SETTINGS, " at line 1"),
        (SETTINGS + "LIST=(a b\n", " at line 5"),
        (SETTINGS.replace("TOKEN=", 'TOKEN="'), " at line 4"),
        (SETTINGS + "exit 3\n", " at line 5"),
        (SETTINGS + "EMPTY=$(false)\nLAST=1\n", " at line 5"),
        (SETTINGS + "there_is_no_such_command || true\nexit 3\n", " at line 6"),
    ],
    ids=["spaces around the sign", "a space behind it", "a value with a space", "a bracket", "a quote that does not end", "a command", "a value from a command that fails", "a command behind one that may fail"],
)
def test_a_line_at_which_deerflows_start_ends_is_named(content: str, place: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_text(content)
    status, output = run("--deerflow", checkout)
    assert status == 1
    assert output.splitlines()[0].startswith(f"failed   .env        {checkout / '.env'} ends DeerFlow's start{place}: it takes NAME=value")
    assert output.splitlines()[1:] == ["warning  settings    not read: .env comes first", "1 problem. Correct it, then restart the Gateway."]


@pytest.mark.parametrize("content", ["first=1\nNAME = value\n", "return 3\n", "A='\n"], ids=["a slip", "a failure", "a quote that does not end"])
def test_a_file_that_the_file_reads_in_turn_is_not_taken_for_it(content: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / "more: line 77: of it").write_text(content)
    (checkout / ".env").write_text(f"{SETTINGS}. {shlex.quote(str(checkout / 'more: line 77: of it'))}\n")
    assert f"{checkout / '.env'} ends DeerFlow's start at line 5: it takes" in run("--deerflow", checkout)[1]


def test_a_command_that_does_not_end_is_found_and_taken_out_by_the_command_that_is_printed(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_text(SETTINGS + f"PASSWORD=$(sleep 600)\nOTHER={TOKEN}\n")
    status, output = run("--deerflow", checkout)
    assert status == 1
    line = output.splitlines()[0]
    assert line.startswith(f"failed   .env        {checkout / '.env'} runs a command at line 5 that does not end within 10 s, and DeerFlow's start waits for it; take it out; run: ")
    subprocess.run(shlex.split(line.rpartition("run: ")[2]), check=True)
    assert (checkout / ".env").read_text() == SETTINGS + f"# PASSWORD=$(sleep 600)\nOTHER={TOKEN}\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xef\xbb\xbf" + SETTINGS.encode(), "begins with a byte order mark"),
        (SETTINGS.replace("\n", "\r\n").encode(), "has the line ends of Windows"),
        (SETTINGS.encode("utf-16"), "is written in UTF-16"),
        (b"\xfe\xff" + SETTINGS.encode("utf-16-be"), "is written in UTF-16"),
        (SETTINGS.encode("utf-16-le"), "is written in UTF-16LE"),
        (SETTINGS.encode("utf-16-be"), "is written in UTF-16BE"),
        (SETTINGS.replace("TOKEN=", "TOKEN=\0\0").encode(), "has bytes in it that are zero"),
        (b"# caf\xe9\n" + SETTINGS.encode(), "is not UTF-8, so DeerFlow does not start"),
    ],
    ids=["mark", "line ends", "UTF-16", "UTF-16 the other way round", "UTF-16LE without mark", "UTF-16BE without mark", "zeros", "Latin-1"],
)
def test_what_an_editor_leaves_is_taken_out_by_the_command_that_is_printed(content: bytes, problem: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_bytes(content)
    (checkout / ".env").chmod(0o600)
    status, output = run("--deerflow", checkout)
    assert status == 1
    line = output.splitlines()[0]
    assert line.startswith(f"failed   .env        {checkout / '.env'} {problem}")
    subprocess.run(["bash", "-c", line.rpartition("run: ")[2]], check=True)
    assert (checkout / ".env").read_text(encoding="utf-8").removeprefix("# caf\xe9\n") == SETTINGS
    assert stat.S_IMODE((checkout / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize("inside", [None, "settings"], ids=["empty", "with something in it"])
def test_a_folder_in_place_of_the_file_is_named_and_put_aside_by_the_command_that_is_printed(inside: str | None, run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").mkdir()
    if inside:
        (checkout / ".env" / inside).write_text(SETTINGS)
    status, output = run("--deerflow", checkout)
    assert status == 1
    line = output.splitlines()[0]
    assert line.startswith(f"failed   .env        {checkout / '.env'} is a folder, so DeerFlow's start reads no variables from it; put it aside and write a file; run: mv ")
    subprocess.run(shlex.split(line.rpartition("run: ")[2]), check=True)
    assert not (checkout / ".env").exists()
    assert [path.read_text() for path in (checkout / ".env.aside").iterdir()] == ([SETTINGS] if inside else [])
    assert f"failed   settings    {PREFIX}BASE_URL is not set" in run("--deerflow", checkout)[1]


def test_a_pipe_in_place_of_the_file_is_named_and_not_listened_to(run: RunDoctor, checkout: Path) -> None:
    os.mkfifo(checkout / ".env")
    status, output = run("--deerflow", checkout)
    assert status == 1
    assert output.startswith(f"failed   .env        {checkout / '.env'} is no regular file, so DeerFlow's start reads no variables from it; put it aside")


def test_a_link_that_leads_nowhere_is_named(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").symlink_to(checkout / "gone")
    status, output = run("--deerflow", checkout)
    assert status == 1
    assert output.startswith(f"failed   .env        {checkout / '.env'} is a link that leads nowhere, so DeerFlow's start reads no variables from it; put it aside")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_this_user_may_not_read_is_opened_by_the_command_that_is_printed(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_text(SETTINGS)
    (checkout / ".env").chmod(0)
    line = run("--deerflow", checkout)[1].splitlines()[0]
    assert line.startswith(f"failed   .env        {checkout / '.env'} cannot be read by this user, so DeerFlow's start stops there; run: chmod u+r ")
    subprocess.run(shlex.split(line.rpartition("run: ")[2]), check=True)
    assert (checkout / ".env").read_text() == SETTINGS


def test_what_is_wrong_with_the_file_is_a_finding_in_json_too(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").mkdir()
    status, output = run("--deerflow", checkout, "--json")
    assert status == 1
    assert [(finding["status"], finding["what"]) for finding in json.loads(output)] == [("failed", ".env"), ("warning", "settings")]


def test_a_line_that_was_joined_to_the_one_before_is_found(run: RunDoctor, checkout: Path) -> None:
    (checkout / ".env").write_text("OPENAI_API_KEY=canary" + SETTINGS)
    assert f"{PREFIX}BASE_URL is not set, but stands within the value of OPENAI_API_KEY: a line end" in run("--deerflow", checkout)[1]


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda path: None, "is not there; correct the variable, or remove it"),
        (Path.mkdir, "is not a file; correct the variable, or remove it"),
        (lambda path: path.write_text("memory: [1,\n"), "is not valid YAML, at line 2, column 1; correct it there, or the variable"),
    ],
    ids=["nothing there", "a folder", "no YAML"],
)
def test_a_configuration_that_a_variable_names_and_that_cannot_be_read_leads_to_the_variable(make: Callable[[Path], object], line: str, run: RunDoctor, checkout: Path) -> None:
    make(checkout / "other.yaml")
    (checkout / ".env").write_text(f"{SETTINGS}DEER_FLOW_CONFIG_PATH={shlex.quote(str(checkout / 'other.yaml'))}\n")
    status, output = run("--deerflow", checkout)
    assert status == 2
    assert f"The doctor cannot run: {checkout / 'other.yaml'}, which DEER_FLOW_CONFIG_PATH names, {line}\n" in output


def test_a_configuration_in_the_backend_folder_is_found_as_deerflow_finds_it(run: RunDoctor, checkout: Path) -> None:
    (checkout / "config.yaml").rename(checkout / "backend" / "config.yaml")
    assert "ok       memory      manager_class powercontext" in run("--deerflow", checkout)[1]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Memory: {manager_class: powercontext}\n", "failed   memory      memory is not in config.yaml, but Memory is: rename it"),
        ("memroy: {manager_class: powercontext}\n", "failed   memory      memory is not in config.yaml, but memroy is: rename it"),
        ("memory: [manager_class, powercontext]\n", "failed   memory      memory is not a mapping, so DeerFlow does not start"),
        ("memory: {enabled: true}\n", "failed   memory      memory.manager_class is not there, so DeerFlow's own memory is used; add memory.manager_class: powercontext"),
        ("memory: {manager-class: powercontext}\n", "failed   memory      memory.manager_class is not there; manager-class is: rename it"),
        ("memory: {manager_class: powercontext, mode: tools}\n", f"failed   memory      there is no such mode, so DeerFlow does not start; set memory.mode: {best_mode()}"),
        ("memory: {manager_class: powercontext, enabled: false}\n", "failed   memory      there is no recall; set memory.enabled to true"),
        (GOOD + "memory: {manager_class: deermem}\n", "failed   config      memory is there more than once, at lines 1, 2, and only the last counts; make one section of them"),
        (GOOD + f"plugins: ['{TOOL}']\n", "failed   tool        plugins is not a list of entries with use, so DeerFlow does not start"),
        (GOOD + f"plugins: {{use: '{TOOL}'}}\n", "failed   tool        plugins is not a list of entries with use, so DeerFlow does not start"),
    ],
)
def test_a_section_that_is_not_what_it_should_be_is_named(content: str, line: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / "config.yaml").write_text(content)
    (checkout / ".env").write_text(SETTINGS)
    status, output = run("--deerflow", checkout)
    assert status == 1
    assert line in output
    assert next(said for said in output.splitlines() if said.startswith("failed")).startswith(line)


def test_a_variable_that_is_missing_anywhere_in_the_configuration_is_named(run: RunDoctor, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    (checkout / "config.yaml").write_text(GOOD + "models: [{name: m, api_key: $NO_SUCH_KEY}]\n")
    status, output = run("--deerflow", checkout)
    assert status == 1
    assert "failed   config      $NO_SUCH_KEY is in config.yaml and not set, so DeerFlow does not start" in output
    assert "ok       memory      manager_class powercontext" in output


@pytest.mark.parametrize("name", [f"{CLASS}.PowerContextMemoryManager", f"{CLASS}:PowerContextMemoryManager"])
def test_the_class_by_its_path_is_this_backend(name: str, run: RunDoctor, checkout: Path) -> None:
    (checkout / "config.yaml").write_text(GOOD.replace("powercontext", f'"{name}"'))
    assert "ok       memory      manager_class powercontext" in run("--deerflow", checkout)[1]


@pytest.mark.parametrize("path", [TOOL, TOOL.replace("tool:", "tools:")])
def test_a_plugin_where_it_has_no_place_is_to_be_taken_out(path: str) -> None:
    detail = check_plugin([{"use": path}], (), mode="tool").detail
    assert detail.startswith("the plugin and mode tool give the model two ways to save; take the plugin out of plugins")
    assert ("mode: middleware" in detail) == (best_mode() == "middleware")


@pytest.mark.skipif(host_has_plugin_tools(), reason="this host has plugin tools")
def test_a_host_without_plugin_tools_is_not_told_to_add_the_plugin() -> None:
    assert check_plugin(None, (), mode="middleware").detail.endswith("(extension API 0.2.2); set memory.mode: tool")
    assert check_plugin([{"use": TOOL}], (), mode="middleware").detail.endswith("set memory.mode: tool, and take the plugin out of plugins")
