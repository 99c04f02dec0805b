"""The doctor of a DeerFlow with several people: everybody's binding, a few at a time, summed up by number."""

from __future__ import annotations

import json
import shlex
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, Configure, StartHTTP
from powercontext_support.real_server import RealServer
from powercontext_support.replies import PREPARE, READINESS, Reply, answer, error, prepared
from werkzeug import Request

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.doctor.__main__ import main

pytest_plugins = ("powercontext_support.fixtures",)
pytest.importorskip("pytest_httpserver")
pytest.importorskip("yaml")

CONFIG = 'memory: {manager_class: powercontext}\nplugins: [{use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"}]\n'

Diagnose = Callable[..., list[str]]


def user(number: int) -> str:
    return f"{number:08}-0000-4000-8000-00000000cafe"


def entries(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"owner_user_id": user(number), "scope_id": f"scp_canary_{number}", **more} for number in range(1, count + 1)]


@pytest.fixture
def diagnose(powercontext_environment: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Diagnose:
    """Return a function that runs the doctor for these people and returns the lines it printed of one kind."""
    monkeypatch.delenv("DEER_FLOW_AUTH_DISABLED", raising=False)
    (tmp_path / "config.yaml").write_text(CONFIG)

    def run(what: str, base_url: str, people: list[dict[str, Any]] | None, mode: int = 0o600, **changes: str | None) -> list[str]:
        if people is not None:
            file = tmp_path / "bindings.json"
            file.write_text(json.dumps({"bindings": people}))
            file.chmod(mode)
            changes = {"bindings_file": str(file), "owner_user_id": None, "scope_id": None} | changes
        powercontext_environment(base_url=base_url, **changes)
        main(["--config", str(tmp_path / "config.yaml")])
        printed = capsys.readouterr()
        output = printed.out + printed.err
        for private in (TOKEN, OWNER, SCOPE, "canary", "cafe"):
            assert private not in output
        return [line for line in output.splitlines() if line.split()[1:2] == [what]]

    return run


def server_with(powercontext_http: StartHTTP, scope_reply: Callable[[str], Reply]) -> Any:
    """Start a server whose Scopes answer as ``scope_reply`` says, given an id."""
    server = powercontext_http()
    server.answer(READINESS, answer({"status": "ready"}))
    server.answer("/v1/server-info", answer({"product": "powercontext", "package_version": "1.4.1"}))
    server.answer("/v1/capabilities", answer({"search_modes": ["auto", "fts"]}))
    server.answer(PREPARE, answer(prepared("Pier seven.")))

    def reply(request: Request) -> Reply:
        return scope_reply(request.path.rsplit("/", 1)[1]) if "authorization" in request.headers else error(401, "unauthorized")

    server.decide(None, reply)
    return server


def test_all_bindings_are_asked_and_summed_up(diagnose: Diagnose, powercontext_http: StartHTTP) -> None:
    replies = {"scp_canary_4": error(404, "scope_not_found")}
    server = server_with(powercontext_http, lambda scope: replies.get(scope, answer({"scope_id": scope})))
    assert diagnose("bindings", server.base_url, entries(12)) == ["failed   bindings    11 of 12 are good. Binding 4: no such Scope. Correct that in the bindings file."]
    replies |= {"scp_canary_1": error(401, "unauthorized"), "scp_canary_5": error(404, "scope_not_found"), "scp_canary_9": error(403, "forbidden"), "scp_canary_12": error(500, "internal_error")}
    assert diagnose("bindings", server.base_url, entries(12)) == [
        "failed   bindings    7 of 12 are good. Binding 1: the token is refused. Bindings 4-5: no such Scope. "
        "Binding 9: the token may not use the Scope, or there is no such Scope. Binding 12: the server answered 500. Correct that in the bindings file."
    ]
    replies.clear()
    assert diagnose("bindings", server.base_url, entries(12)) == ["ok       bindings    all are good."]


def test_a_few_are_asked_at_a_time(diagnose: Diagnose, powercontext_http: StartHTTP) -> None:
    lock, asked, under_way, most = threading.Lock(), [0], [0], [0]
    together = threading.Barrier(4)

    def slow(scope: str) -> Reply:
        with lock:
            asked[0] += 1
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            first = asked[0] <= 4
        if first:
            together.wait(10)  # goes on only if four may be under way at a time
        with lock:
            under_way[0] -= 1
        return answer({"scope_id": scope})

    server = server_with(powercontext_http, slow)
    assert diagnose("bindings", server.base_url, entries(12), recall_timeout_seconds="4") == ["ok       bindings    all are good."]
    assert most == [4]


def test_of_a_server_that_is_not_there_it_is_said_once(diagnose: Diagnose) -> None:
    assert diagnose("bindings", "http://127.0.0.1:9", entries(12)) == []
    [line] = diagnose("server", "http://127.0.0.1:9", entries(12))
    assert line.startswith("failed   server      PowerContext cannot be reached")


def test_tokens_that_may_use_a_scope_and_nothing_else_are_good(diagnose: Diagnose, powercontext_principals: RealServer) -> None:
    server = powercontext_principals
    people: list[dict[str, Any]] = []
    for name in ("ann", "ben"):
        scope_id = server.create_scope(f"doctor {name}")
        body = {"subject": {"type": "user", "id": name}, "resource": {"type": "scope", "scope_id": scope_id}, "role": "scope.contributor", "idempotency_key": scope_id}
        server.request("POST", "/v1/access/bindings/create", body).raise_for_status()
        people.append({"owner_user_id": user(len(people)), "scope_id": scope_id, "token": f"{name}s-own-test-token"})
    assert diagnose("bindings", server.base_url, people) == ["ok       bindings    all are good."]
    assert diagnose("version", server.base_url, people) == ["ok       version     not told to this token"]
    [recall] = diagnose("recall", server.base_url, people)
    assert recall.startswith(("ok ", "warning "))
    crossed = [person | {"scope_id": other["scope_id"]} for person, other in zip(people, reversed(people), strict=True)]
    [line] = diagnose("bindings", server.base_url, crossed)
    assert line.startswith("failed   bindings    0 of 2 are good. Bindings 1-2: the token may not use the Scope")


def test_a_file_others_may_read_is_warned_of(diagnose: Diagnose, powercontext_http: StartHTTP, tmp_path: Path) -> None:
    server = server_with(powercontext_http, lambda scope: answer({"scope_id": scope}))
    [_, line] = diagnose("settings", server.base_url, entries(2), mode=0o644)
    assert line.startswith("warning  settings    the file of POWERCONTEXT_DEERFLOW_BINDINGS_FILE can be read or changed by others than its owner")
    assert f": chmod 600 {shlex.quote(str(tmp_path / 'bindings.json'))}, if it is no secret that a container was given" in line
    assert len(diagnose("settings", server.base_url, entries(2), mode=0o400)) == 1


def make_users(folder: Path, ids: list[str], table: str = "users") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "deerflow.db")) as connection, connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"CREATE TABLE {table} (id VARCHAR(36) PRIMARY KEY, email TEXT, created_at DATETIME)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, 'canary@example.com', ?)", [(user_id, f"2026-01-{number + 1:02}") for number, user_id in enumerate(ids)])


def test_users_without_a_binding_are_told_by_number(diagnose: Diagnose, tmp_path: Path) -> None:
    make_users(tmp_path / "backend" / ".deer-flow" / "data", [user(9), user(2), user(1), user(8), user(7), user(3)])
    expected = "ok       users       3 of DeerFlow's 6 users have a binding; user 1, 4-5 (in the order in which they signed up) have none"
    assert diagnose("users", "http://127.0.0.1:9", entries(3)) == [expected]


def test_a_binding_of_nobody_is_told(diagnose: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG + f"database: {{backend: sqlite, sqlite_dir: {tmp_path / 'data'}}}\n")
    make_users(tmp_path / "data", [user(1), user(3)])
    there = f"is not in DeerFlow's user table; see it there: sqlite3 {(tmp_path / 'data' / 'deerflow.db').resolve()} 'SELECT id, email FROM users'"
    assert diagnose("users", "http://127.0.0.1:9", entries(4)) == [
        f"failed   users       the id of bindings 2, 4 in POWERCONTEXT_DEERFLOW_BINDINGS_FILE {there}",
        "ok       users       2 of DeerFlow's 2 users have a binding",
    ]
    one = {"bindings_file": None, "scope_id": SCOPE}
    assert diagnose("users", "http://127.0.0.1:9", None, owner_user_id=user(2), **one) == [f"failed   users       the id in POWERCONTEXT_DEERFLOW_OWNER_USER_ID {there}"]
    assert diagnose("users", "http://127.0.0.1:9", None, owner_user_id=user(3), **one) == ["ok       users       the owner is in DeerFlow's user table"]


def test_a_deerflow_where_nobody_has_signed_up_is_told(diagnose: Diagnose, tmp_path: Path) -> None:
    make_users(tmp_path / ".deer-flow" / "data", [])
    [line] = diagnose("users", "http://127.0.0.1:9", entries(1))
    assert line.startswith("failed   users       nobody has signed up in DeerFlow yet: sign up, open /api/v1/auth/me there")


@pytest.mark.parametrize("kind", ["another table", "no database"])
def test_a_user_table_that_cannot_be_read_is_told(kind: str, diagnose: Diagnose, tmp_path: Path) -> None:
    folder = tmp_path / ".deer-flow" / "data"
    make_users(folder, [user(1)], table="people")
    if kind == "no database":
        (folder / "deerflow.db").write_bytes(b"canary" * 1000)
        for left in folder.glob("deerflow.db-*"):
            left.unlink()
    assert diagnose("users", "http://127.0.0.1:9", entries(1)) == [
        f"warning  users       DeerFlow's user table cannot be read, so nobody's id was looked up; this tells why: sqlite3 {shlex.quote(str(folder / 'deerflow.db'))} 'SELECT id, email FROM users'"
    ]


def test_a_start_asks_about_everybody(powercontext_people: Callable[..., PowerContextMemoryManager], powercontext_http: StartHTTP, caplog: pytest.LogCaptureFixture) -> None:
    bad = {"scp_canary_3"}
    server = server_with(powercontext_http, lambda scope: error(404, "scope_not_found") if scope in bad else answer({"scope_id": scope}))
    with caplog.at_level("INFO"):
        powercontext_people(server.base_url, *entries(4)).warm()
    assert "PowerContext memory will not work yet: 3 of 4 are good. Binding 3: no such Scope. Correct that in the bindings file." in caplog.messages
    assert "canary" not in caplog.text
