"""The bindings file: several people, each with their own Scope; valid as a whole, or nobody is served."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from powercontext_support import OWNER, SCOPE, TOKEN, Configure

from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError
from deerflow.agents.memory.backends.powercontext.settings.loading import PowerContextSettings, load_settings

pytest_plugins = ("powercontext_support.fixtures",)

ANN, BEN = "canary-ann", "canary-ben"
REMOTE = "https://powercontext.example.com"

Load = Callable[..., PowerContextSettings]


def person(owner_user_id: Any = ANN, scope_id: Any = "scp_canary_a", **more: Any) -> dict[str, Any]:
    return {"owner_user_id": owner_user_id, "scope_id": scope_id} | more


def file_of(*people: Any) -> bytes:
    return json.dumps({"bindings": people}).encode()


TWO = (person(), person(BEN, "scp_canary_b"))


@pytest.fixture
def load(powercontext_environment: Configure, tmp_path: Path) -> Load:
    """Return a function that loads the settings with a bindings file of this content."""

    def load(content: bytes, mode: int = 0o600, **changes: str | None) -> PowerContextSettings:
        path = tmp_path / "bindings.json"
        path.write_bytes(content)
        path.chmod(mode)
        powercontext_environment(**({"bindings_file": str(path), "owner_user_id": None, "scope_id": None} | changes))
        return load_settings()

    return load


def faults_of(load: Callable[[], object]) -> list[str]:
    """Return what is said of wrong settings, which shows nothing of what they are."""
    with pytest.raises(PowerContextConfigurationError) as caught:
        load()
    text = str(caught.value)
    for private in ("canary", OWNER, SCOPE, TOKEN):
        assert private not in text
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    return [line.removeprefix("- POWERCONTEXT_DEERFLOW_") for line in text.splitlines()[1:]]


def test_each_person_has_their_own_scope_and_token(load: Load) -> None:
    people = load(file_of(person(token="canary-token-of-ann"), person(BEN, "scp_canary_b"))).people
    ann, ben = people.binding_of(ANN), people.binding_of(BEN)
    assert ann is not None
    assert ben is not None
    assert ann.token is not None
    assert ben.token is not None
    assert (ann.scope_id.get_secret_value(), ann.token.get_secret_value()) == ("scp_canary_a", "canary-token-of-ann")
    assert (ben.scope_id.get_secret_value(), ben.token.get_secret_value()) == ("scp_canary_b", TOKEN)
    assert f"{ann} {ben}" == "binding 1 of 2 binding 2 of 2"
    assert [people.binding_of(user_id) for user_id in ("canary-cid", "", "default", None, OWNER, f"{ANN} ", ANN.upper())] == [None] * 7


def test_one_person_by_variables_is_a_file_of_one(load: Load, powercontext_environment: Configure) -> None:
    by_file = load(file_of(person(OWNER, SCOPE))).people.binding_of(OWNER)
    powercontext_environment(bindings_file=None)
    assert load_settings().people.binding_of(OWNER) == by_file


ODD = (
    "0b6a", "0b6a2d0e", "0B6A2D0E", "ann", "Ann", "ANN", "a\u006e\u0303", "a\u00f1", "\u0430nn", "\uff41nn", "x" * 256, "x" * 255 + "y", "x" * 255,
    "1", "01", "null", "true", "undefined", "__proto__", "DEFAULT", "Default", "default.", "a/b", "a\\b", "..", "张三", "👩‍💻".replace("\u200d", ""), "ﬁ", "fi", "İ", "i\u0307", "ß", "ss",
)  # fmt: skip


def test_ids_that_look_alike_are_different_people(load: Load) -> None:
    people = load(file_of(*(person(user_id, f"scp_{number}") for number, user_id in enumerate(ODD)))).people
    for number, user_id in enumerate(ODD):
        binding = people.binding_of(user_id)
        assert binding is not None
        assert binding.scope_id.get_secret_value() == f"scp_{number}"
    for stranger in (*(f"{user_id}x" for user_id in ODD if len(user_id) > 2), "x" * 254, "aNN", "\uff21nn", "a\u0303n"):
        assert stranger in ODD or people.binding_of(stranger) is None


OWNER_RULE = "owner_user_id must be the id of a signed-in DeerFlow user"
SCOPE_RULE = "scope_id must be the id of a PowerContext Scope"
TOKEN_RULE = "token must be printable ASCII without white space"
SHAPE = "the file must be one JSON object with the key bindings once"

BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty; add a person with `python -m deerflow.agents.memory.backends.powercontext.bind add`"),
    "blank": (b" \n\t", "the file is empty"),
    "cut": (file_of(*TWO)[:-3], "the file is not JSON (line 1, column "),
    "a comma too much": (b'{"bindings": [\n{"owner_user_id": "canary", "scope_id": "canary"},\n]}', "the file is not JSON (line 3, column 1); correct it there"),
    "single quotes": (b"{'bindings': []}", "the file is not JSON (line 1, column 2); correct it there"),
    "two documents": (file_of(*TWO) * 2, "the file is not JSON (line 1, column "),
    "YAML": (b"bindings:\n- owner_user_id: canary", "the file is not JSON (line 1, column 1); correct it there"),
    "a byte order mark": (b"\xef\xbb\xbf" + file_of(*TWO), "the file begins with a byte order mark"),
    "UTF-16": (file_of(*TWO).decode().encode("utf-16"), "the file begins with a byte order mark"),
    "Latin-1": (b'{"bindings": [{"owner_user_id": "canary\xe9"}]}', "the file is not UTF-8 (byte 40); save it as UTF-8"),
    "deep nesting": (b'{"bindings": ' + b"[" * 200_000, "the file is not what it should be: brackets within brackets"),
    "a number without end": (b'{"bindings": ' + b"9" * 5000 + b"}", "the file is not what it should be: it has a number"),
    "a list": (json.dumps(TWO).encode(), SHAPE),
    "a word": (b'"canary"', SHAPE),
    "NaN": (b"NaN", SHAPE),
    "nothing named bindings": (b'{"people": []}', SHAPE),
    "something else beside": (b'{"bindings": [], "canary": 1}', SHAPE),
    "bindings twice": (b'{"bindings": [], "bindings": []}', SHAPE),
    "bindings that are an object": (b'{"bindings": {"canary": {}}}', SHAPE),
    "bindings that are null": (b'{"bindings": null}', SHAPE),
    "nobody": (b'{"bindings": []}', "the file has no binding; add a person with `python -m deerflow.agents.memory.backends.powercontext.bind add`"),
    "too many": (file_of(*(person(f"u{number}", f"s{number}") for number in range(10_001))), "the file has 10001 bindings, and at most 10000 are allowed"),
    "an entry that is text": (file_of(TWO[0], "canary"), "binding 2: must be an object with owner_user_id and scope_id"),
    "an entry that is a list": (file_of(TWO[0], ["canary"]), "binding 2: must be an object with owner_user_id and scope_id"),
    "an entry that is null": (file_of(None, *TWO), "binding 1: must be an object with owner_user_id and scope_id"),
    "an unknown key": (file_of(TWO[0], person(BEN, canary="canary")), "binding 2: key 3 is none of owner_user_id, scope_id, token, shared"),
    "a key twice": (b'{"bindings": [{"owner_user_id": "canary-a", "scope_id": "s", "scope_id": "canary-t"}]}', "binding 1: scope_id is there more than once"),
    "no owner": (file_of(TWO[0], {"scope_id": "canary"}), f"binding 2: owner_user_id is missing; it {OWNER_RULE.partition(' ')[2]}"),
    "no Scope": (file_of(TWO[0], {"owner_user_id": "canary"}), f"binding 2: scope_id is missing; it {SCOPE_RULE.partition(' ')[2]}"),
    "an owner that is a number": (file_of(TWO[0], person(5)), f"binding 2: {OWNER_RULE}"),
    "an owner that is null": (file_of(person(None)), f"binding 1: {OWNER_RULE}"),
    "the fallback owner": (file_of(TWO[0], person("default")), f"binding 2: {OWNER_RULE}"),
    "a padded owner": (file_of(TWO[0], person(" canary")), f"binding 2: owner_user_id has a space or a line end in it; it {OWNER_RULE.partition(' ')[2]}"),
    "an e-mail address": (file_of(person("canary@example.com")), f"binding 1: owner_user_id looks like an e-mail address; it {OWNER_RULE.partition(' ')[2]}"),
    "half a character": (b'{"bindings": [{"owner_user_id": "canary\\ud800", "scope_id": "s"}]}', f"binding 1: owner_user_id has a sign in it that does not show; it {OWNER_RULE.partition(' ')[2]}"),
    "a long Scope": (file_of(TWO[0], person(BEN, "canary" * 50)), f"binding 2: {SCOPE_RULE}"),
    "a Scope that is a list": (file_of(person(ANN, ["canary"])), f"binding 1: {SCOPE_RULE}"),
    "a variable as a token": (file_of(person(token="${CANARY}")), f"binding 1: token has a variable or a placeholder in it that is not filled in; it {TOKEN_RULE.partition(' ')[2]}"),
    "a token with a line end": (file_of(person(token="canary\n")), f"binding 1: token has a space or a line end in it; it {TOKEN_RULE.partition(' ')[2]}"),
    "a token that is null": (file_of(person(token=None)), f"binding 1: {TOKEN_RULE}"),
    "an empty token": (file_of(person(token="")), f"binding 1: token is empty; it {TOKEN_RULE.partition(' ')[2]}"),
    "shared as text": (file_of(person(shared="true")), "binding 1: shared must be true or false"),
    "shared as a number": (file_of(person(shared=1)), "binding 1: shared must be true or false"),
    "shared as NaN": (b'{"bindings": [{"owner_user_id": "canary", "scope_id": "s", "shared": NaN}]}', "binding 1: shared must be true or false"),
    "a person twice": (file_of(*TWO, person(ANN, "scp_c")), "binding 3: owner_user_id is that of binding 1; a person has one binding"),
    "a Scope for two": (file_of(*TWO, person("cid", "scp_canary_b")), 'binding 3: scope_id is that of binding 2; if these people are to share their memory, both need "shared": true'),
    "a Scope that one of two shares": (file_of(person(shared=True), person(BEN)), "binding 2: scope_id is that of binding 1"),
    "a Scope that the other shares": (file_of(person(), person(BEN, shared=True)), "binding 2: scope_id is that of binding 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_by_position_and_serves_nobody(name: str, load: Load) -> None:
    content, fault = BROKEN[name]
    found = faults_of(lambda: load(content))
    assert [line.startswith(f"BINDINGS_FILE: {fault}") for line in found] == [True], found


def test_all_faults_are_named_at_once_and_many_are_counted(load: Load) -> None:
    several = faults_of(lambda: load(file_of(person("default", 5, token=6), person(BEN), {"scope_id": "s"}), max_bytes="1"))
    assert [line[:40] for line in several] == [
        "MAX_BYTES must be a whole number from 51",
        "BINDINGS_FILE: binding 1: owner_user_id ",
        "BINDINGS_FILE: binding 1: scope_id must ",
        "BINDINGS_FILE: binding 1: token must be ",
        "BINDINGS_FILE: binding 3: owner_user_id ",
    ]
    many = faults_of(lambda: load(file_of(*["canary"] * 1000), max_bytes=None))
    assert (len(many), many[-1]) == (21, "BINDINGS_FILE: and 980 faults more")


def test_two_people_share_a_scope_if_both_say_so(load: Load) -> None:
    people = load(file_of(person(shared=True), person(BEN, shared=True), person("cid", "scp_c", shared=False))).people
    assert [binding.scope_id.get_secret_value() for binding in people.bindings] == ["scp_canary_a", "scp_canary_a", "scp_c"]


@pytest.mark.parametrize("name", ["owner_user_id", "scope_id"])
def test_both_ways_at_once_are_refused(name: str, load: Load) -> None:
    found = faults_of(lambda: load(file_of(*TWO), **{name: "canary"}))
    assert found == [f"{name.upper()} and POWERCONTEXT_DEERFLOW_BINDINGS_FILE both say whose memory this is: remove one of the two"]


def test_away_from_this_machine_everybody_needs_a_token(load: Load) -> None:
    found = faults_of(lambda: load(file_of(person(token="canary"), TWO[1]), base_url=REMOTE, token=None))
    assert [line.split("; ")[0] for line in found] == ["BINDINGS_FILE: binding 2: token is missing, and POWERCONTEXT_DEERFLOW_TOKEN is not set"]
    assert len(load(file_of(person(token="canary"), TWO[1]), base_url=REMOTE).people.bindings) == 2
    assert len(load(file_of(person(token="a"), person(BEN, "scp_b", token="b")), base_url=REMOTE, token=None).people.bindings) == 2
    assert [binding.token for binding in load(file_of(*TWO), token=None).people.bindings] == [None, None]


@pytest.mark.parametrize("path", ["", "bindings.json", "~/bindings.json", "./bindings.json"])
def test_the_path_has_to_be_absolute(path: str, powercontext_environment: Configure) -> None:
    powercontext_environment(bindings_file=path, owner_user_id=None, scope_id=None)
    found = faults_of(load_settings)
    assert found == ["BINDINGS_FILE must be the absolute path of a JSON file with bindings, such as /etc/deer-flow/bindings.json"]


def make_nothing(path: Path) -> None:
    """Leave the path without a file."""


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is limited to some 100 bytes
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(8_000_001)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (make_nothing, "there is no such file; correct the path, or add a person with `python -m deerflow.agents.memory.backends.powercontext.bind add`"),
    "a dangling link": (lambda path: path.symlink_to(path.parent / "canary"), "there is no such file; correct the path, or add a person with `python -m deerflow.agents.memory.backends.powercontext.bind add`"),
    "a link to itself": (make_loop, "its links lead in a circle"),
    "a folder": (Path.mkdir, "it is not a regular file"),
    "a pipe nobody writes to": (os.mkfifo, "it is not a regular file"),
    "a socket": (make_socket, "it is not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
    "too large": (make_large, "it is larger than 8000000 bytes"),
}


@pytest.mark.skipif(os.name != "posix", reason="such files are POSIX's")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_file_is_refused_and_not_waited_for(name: str, tmp_path: Path, powercontext_environment: Configure) -> None:
    make, reason = NO_FILES[name]
    path = tmp_path / "canary.json"
    make(path)
    powercontext_environment(bindings_file=str(path), owner_user_id=None, scope_id=None)
    assert faults_of(load_settings) == [f"BINDINGS_FILE: the file cannot be used: {reason}"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_this_process_may_not_read_is_named(load: Load) -> None:
    assert faults_of(lambda: load(file_of(*TWO), mode=0o000)) == ["BINDINGS_FILE: the file cannot be used: this process may not read it"]


def test_nothing_of_a_file_shows(load: Load) -> None:
    settings = load(file_of(person(token="canary-token"), TWO[1]))
    shown = f"{settings!r} {settings.people!r} {settings.people.bindings!r} {[binding.scope_id for binding in settings.people.bindings]}"
    assert "canary" not in shown
    assert str(settings.bindings_file) not in shown


def test_the_file_is_read_once(load: Load, tmp_path: Path) -> None:
    first = load(file_of(*TWO))
    (tmp_path / "bindings.json").write_bytes(b"broken")
    assert load_settings() is first
