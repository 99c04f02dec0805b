"""The command that says who may use which Scope: one command and a restart add a colleague."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import Configure, StartHTTP
from powercontext_support.real_server import RealServer
from powercontext_support.replies import answer, error

from deerflow.agents.memory.backends.powercontext.bind import main
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("pytest_httpserver")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="it writes files as POSIX does")

ANN, BEN = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
OWN = "canary-token-of-ann"

Bind = Callable[..., tuple[int, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "people" / "bindings.json"


@pytest.fixture
def bind(file: Path, powercontext_environment: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bind:
    """Return a function that runs the command in an environment and returns its exit code and what it printed, never a token."""
    file.parent.mkdir()

    def run(*arguments: str, stdin: str = "", **environment: str | None) -> tuple[int, str]:
        powercontext_environment(**({"bindings_file": str(file), "owner_user_id": None, "scope_id": None} | environment))
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main(list(arguments))
        printed = capsys.readouterr()
        output = printed.out + printed.err
        for private in (OWN, "canary", str(environment.get("token") or "no token")):
            assert private not in output
        return code, output

    return run


def people(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["bindings"]
    return found


def test_a_colleague_is_added_with_a_scope_of_their_own(bind: Bind, file: Path, powercontext_server: RealServer) -> None:
    environment = {"base_url": powercontext_server.base_url, "token": powercontext_server.token}
    assert bind("add", ANN, **environment) == (0, "Binding 1 of 1 is added. Restart every Gateway process.\n")
    assert bind("add", BEN, **environment) == (0, "Binding 2 of 2 is added. Restart every Gateway process.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["bindings.json"]
    [ann, ben] = people(file)
    assert (ann["owner_user_id"], ben["owner_user_id"], set(ann)) == (ANN, BEN, {"owner_user_id", "scope_id"})
    assert ann["scope_id"] != ben["scope_id"]
    scope = powercontext_server.request("GET", f"/v1/scopes/{ann['scope_id']}").json()
    assert ANN not in json.dumps(scope)
    bound = load_settings().people.binding_of(BEN)
    assert bound is not None
    assert bound.scope_id.get_secret_value() == ben["scope_id"]


def test_the_same_command_again_changes_nothing_and_a_lost_file_gets_the_same_scope(bind: Bind, file: Path, powercontext_server: RealServer) -> None:
    environment = {"base_url": powercontext_server.base_url, "token": powercontext_server.token}
    bind("add", ANN, **environment)
    before = file.stat()
    asked = powercontext_server.count_requests("create_scope")
    assert bind("add", ANN, **environment) == (0, "Binding 1 of 1 is so already; nothing was changed.\n")
    assert (file.stat().st_ino, file.stat().st_mtime_ns, powercontext_server.count_requests("create_scope")) == (before.st_ino, before.st_mtime_ns, asked)
    [ann] = people(file)
    file.unlink()
    bind("add", ANN, **environment)
    assert people(file) == [ann]


def test_a_person_with_a_token_of_their_own_is_granted_the_new_scope_and_no_other(bind: Bind, file: Path, powercontext_principals: RealServer) -> None:
    server = powercontext_principals
    environment = {"base_url": server.base_url, "token": server.token}
    assert bind("add", ANN, "--token-file", "-", stdin="anns-own-test-token\n", **environment)[0] == 0
    (file.parent / "token").write_text("bens-own-test-token\n")
    assert bind("add", BEN, "--token-file", str(file.parent / "token"), **environment)[0] == 0
    [ann, ben] = people(file)
    assert (ann["token"], ben["token"]) == ("anns-own-test-token", "bens-own-test-token")
    mine, others = [server.request_as(ann["token"], "GET", f"/v1/scopes/{entry['scope_id']}").status_code for entry in (ann, ben)]
    assert (mine, others) == (200, 403)
    code, output = bind("add", "carl", "--scope", ann["scope_id"], "--token-file", "-", stdin="bens-own-test-token", **environment)
    assert (code, "the token may not use this Scope" in output, len(people(file))) == (1, True, 2)


def test_a_token_can_be_replaced(bind: Bind, file: Path, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(None, answer({"scope_id": "scp_1"}))
    environment = {"base_url": server.base_url}
    bind("add", ANN, "--scope", "scp_1", **environment)
    assert bind("add", ANN, "--token-file", "-", stdin=OWN, **environment) == (0, "Binding 1 of 1 is changed. Restart every Gateway process.\n")
    assert people(file) == [{"owner_user_id": ANN, "scope_id": "scp_1", "token": OWN}]
    assert [(request.method, request.headers["authorization"]) for request in server.requests][1:] == [("GET", f"Bearer {OWN}")]


def test_a_scope_is_shared_only_if_both_are_told_so(bind: Bind, file: Path, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(None, answer({"scope_id": "scp_1"}))
    environment = {"base_url": server.base_url}
    bind("add", ANN, "--scope", "scp_1", **environment)
    before = file.read_bytes()
    code, output = bind("add", BEN, "--scope", "scp_1", "--shared", **environment)
    assert (code, 'both need "shared": true' in output, file.read_bytes() == before) == (1, True, True)
    bind("add", ANN, "--shared", **environment)
    assert bind("add", BEN, "--scope", "scp_1", "--shared", **environment)[0] == 0
    assert [entry["shared"] for entry in people(file)] == [True, True]


def test_list_shows_people_and_scopes_and_no_token(bind: Bind, file: Path) -> None:
    file.write_text(json.dumps({"bindings": [{"owner_user_id": ANN, "scope_id": "scp_1", "token": OWN}, {"owner_user_id": BEN, "scope_id": "scp_2", "shared": True}]}))
    assert bind("list") == (0, f"    1  {ANN}  scp_1  a token of their own\n    2  {BEN}  scp_2  shared\n")


def test_remove_takes_the_person_out_and_asks_the_server_nothing(bind: Bind, file: Path, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    file.write_text(json.dumps({"bindings": [{"owner_user_id": ANN, "scope_id": "scp_1", "token": OWN}, {"owner_user_id": BEN, "scope_id": "scp_2"}]}))
    assert bind("remove", ANN, base_url=server.base_url) == (0, "The person is removed; 1 are left. The Scope and its memories stay. Restart every Gateway process.\n")
    assert bind("remove", ANN, base_url=server.base_url) == (0, "This person is not in the file; nothing was changed.\n")
    assert people(file) == [{"owner_user_id": BEN, "scope_id": "scp_2"}]
    code, output = bind("remove", BEN, base_url=server.base_url)
    assert (code, "there is no memory for anybody until somebody is added" in output, people(file)) == (0, True, [])
    assert bind("list") == (0, "There is nobody in the file.\n")
    assert server.requests == []


REFUSED: dict[str, tuple[tuple[str, ...], str, dict[str, str | None], str]] = {
    "an id that is none": (("add", "ann@example.com"), "", {}, "the user id must be the id of a signed-in DeerFlow user"),
    "the fallback": (("add", "default"), "", {}, "the user id must be"),
    "a Scope that is none": (("add", ANN, "--scope", "<scope>"), "", {}, "the Scope must be the id of a PowerContext Scope"),
    "a token with a space": (("add", ANN, "--token-file", "-"), "canary token", {}, "the token must be printable ASCII"),
    "no token": (("add", ANN, "--token-file", "-"), "", {}, "the token must be printable ASCII"),
    "no such token file": (("add", ANN, "--token-file", "/nonexistent"), "", {}, "the token's file cannot be read"),
    "another Scope": (("add", BEN, "--scope", "scp_9"), "", {}, "binding 1 is this person's, and has another Scope; remove it first"),
    "no server": (("add", ANN), "", {}, "PowerContext cannot be reached"),
    "no URL": (("add", ANN), "", {"base_url": None}, "POWERCONTEXT_DEERFLOW_BASE_URL is not set"),
    "no token for a server elsewhere": (("add", ANN), "", {"base_url": "https://powercontext.example.com", "token": None}, "a token is needed: set POWERCONTEXT_DEERFLOW_TOKEN"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_the_file_as_it_was(name: str, bind: Bind, file: Path) -> None:
    arguments, stdin, environment, reason = REFUSED[name]
    file.write_text(json.dumps({"bindings": [{"owner_user_id": BEN, "scope_id": "scp_1"}]}))
    before = file.read_bytes()
    code, output = bind(*arguments, stdin=stdin, **environment)
    assert (code, output.startswith(f"Nothing was changed: {'the environment is not that of the Gateway' if name == 'no URL' else reason}")) == (1, True), output
    assert reason in output
    assert (file.read_bytes(), os.listdir(file.parent)) == (before, ["bindings.json"])


SERVERS = {
    "no such Scope": (("--scope", "scp_1"), error(404, "scope_not_found"), "PowerContext has no such Scope: name one that is there"),
    "a refused token": (("--scope", "scp_1"), error(401, "unauthorized"), "PowerContext refuses the token"),
    "no administrator": ((), error(403, "forbidden"), "PowerContext does not let POWERCONTEXT_DEERFLOW_TOKEN create Scopes"),
    "a failing server": ((), error(500, "internal_error"), "PowerContext fails inside"),
    "another Scope than asked for": ((), answer({"id": "scp_1"}), "PowerContext does not answer as it should"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_refuses_leaves_no_file(name: str, bind: Bind, file: Path, powercontext_http: StartHTTP) -> None:
    arguments, reply, reason = SERVERS[name]
    server = powercontext_http()
    server.answer(None, reply)
    code, output = bind("add", ANN, *arguments, base_url=server.base_url)
    assert (code, output.startswith(f"Nothing was changed: {reason}")) == (1, True), output
    assert os.listdir(file.parent) == []


def test_a_broken_file_is_not_touched_and_its_faults_are_named(bind: Bind, file: Path) -> None:
    file.write_text('{"bindings": [{"owner_user_id": "canary@example.com", "scope_id": "s"}]}')
    for arguments in (("add", ANN), ("list",), ("remove", ANN)):
        code, output = bind(*arguments)
        assert (code, "binding 1: owner_user_id looks like an e-mail address; it must be" in output) == (1, True)
    assert "canary" in file.read_text()


def test_a_link_stays_a_link(bind: Bind, file: Path) -> None:
    real = file.parent / "real.json"
    real.write_text(json.dumps({"bindings": [{"owner_user_id": ANN, "scope_id": "scp_1"}, {"owner_user_id": BEN, "scope_id": "scp_2"}]}))
    file.symlink_to(real)
    assert bind("remove", BEN)[0] == 0
    assert (file.is_symlink(), len(people(real))) == (True, 1)


@pytest.mark.parametrize("arguments", [(), ("ad", ANN), ("add",), ("add", ANN, "--token", OWN), ("add", ANN, OWN)])
def test_wrong_usage_ends_with_2_and_quotes_nothing(arguments: tuple[str, ...], bind: Bind, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bind(*arguments)
    assert caught.value.code == 2
    assert OWN not in capsys.readouterr().err


@pytest.mark.parametrize("path", ["relative.json", ""])
def test_the_file_is_named_by_its_absolute_path(path: str, bind: Bind) -> None:
    assert bind("--file", path, "list") == (2, "Name the bindings file by its absolute path, with --file or POWERCONTEXT_DEERFLOW_BINDINGS_FILE.\n")


def test_commands_at_the_same_time_lose_nobody(file: Path, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.decide(None, lambda request: answer({"scope_id": request.path.split("/")[-1]}))
    file.parent.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POWERCONTEXT_")} | {
        "PYTHONPATH": ":".join(path for path in sys.path if path),
        "POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url,
        "POWERCONTEXT_DEERFLOW_BINDINGS_FILE": str(file),
    }
    command = [sys.executable, "-m", "deerflow.agents.memory.backends.powercontext.bind", "add"]
    running = [subprocess.Popen([*command, f"user-{number}", "--scope", f"scp_{number}"], env=environment, stdout=subprocess.PIPE, text=True) for number in range(6)]
    said = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 6
    assert sorted(said) == [f"Binding {number} of {number} is added. Restart every Gateway process.\n" for number in range(1, 7)]
    assert {entry["owner_user_id"] for entry in people(file)} == {f"user-{number}" for number in range(6)}
    assert os.listdir(file.parent) == ["bindings.json"]
