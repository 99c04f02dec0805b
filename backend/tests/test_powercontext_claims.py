"""What is claimed of a save when a proxy answers, when the server lies, and when nobody can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from powercontext_support import Configure, StartHTTP, binding
from powercontext_support.replies import REMEMBER, SEARCH, Reply, answer, error, found, record, remembered

from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.outcomes import AlreadySaved, NotSaved, Outcome, Saved, Unknown
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver
from deerflow.agents.memory.backends.powercontext.tools.wording import saved

pytest_plugins = ("powercontext_support.fixtures",)

TEXT = "Order service convention: refund amounts are integer cents."
RECORD = record(TEXT, "convention")
STORED = answer(remembered(RECORD))
PAGE = b"<html><title>Please wait</title></html>"

Save = Callable[..., Outcome]


@pytest.fixture
def save(powercontext_environment: Configure) -> Save:
    """Return a function that saves ``TEXT`` on a server whose look-ups take one second at most."""

    def save_on(server: Any) -> Outcome:
        powercontext_environment(base_url=server.base_url, remember_timeout_seconds="1")
        return Saver(load_settings()).save(binding(), "convention", TEXT)

    return save_on


OTHERS = {
    **{f"{status} of a proxy": Reply(status, PAGE) for status in (301, 307, 400, 401, 403, 404, 405, 408, 409, 425, 429, 499, 500, 502, 503, 504)},
    "JSON of a proxy": answer({"error": {"code": "blocked", "message": "No.", "details": None}}, 403),
    "an envelope without a code we know": error(409, "memory_capacity_exceeded"),
    "a code with another status": error(500, "invalid_request"),
    "a failure inside the server": error(500, "internal_error"),
    "access that cannot be decided": error(503, "access_unavailable"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_refusal_that_is_not_powercontexts_own_leaves_it_unknown(name: str, save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, OTHERS[name])
    assert isinstance(save(server), Unknown)
    assert len(server.requests_to(REMEMBER)) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_a_write_that_went_through_all_the_same_is_found(name: str, save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()), answer(found(RECORD)))
    server.answer(REMEMBER, OTHERS[name])
    outcome = save(server)
    assert isinstance(outcome, Saved)
    assert outcome.by_read_back
    assert len(server.requests_to(REMEMBER)) == 1


LIES = {
    "another text": record("Refund amounts are floats.", "convention"),
    "another kind": record(TEXT, "fact"),
    "another state": record(TEXT, "convention", state="forgotten"),
    "no text": {key: value for key, value in RECORD.items() if key != "text"},
}


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("name", LIES)
def test_a_reply_about_another_memory_confirms_nothing(name: str, changed: bool, save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, answer(remembered(LIES[name], changed=changed)))
    assert isinstance(save(server), Unknown)


def test_before_1_3_a_reply_about_another_memory_confirms_nothing(save: Save, powercontext_http: StartHTTP) -> None:
    citation = {"memory_ref": {"family": "memory", "artifact_id": "memory", "revision": 1}, "entry_id": "mem_ent_1", "entry_version_id": "mem_ver_1"}
    server = powercontext_http()
    for entry in ({"kind": "convention", "text": "x"}, {"kind": "fact", "text": TEXT}, {"kind": "convention", "text": TEXT, "state": "inactive"}):
        server.clear()
        server.answer(SEARCH, answer({"mode": "fts", "hits": []}))
        server.answer(REMEMBER, answer({"memory": citation["memory_ref"], "entry": {"citation": citation, "state": "active"} | entry}))
        assert isinstance(save(server), Unknown)


def test_nothing_changed_and_nothing_named_is_not_already_saved(save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, answer(remembered(changed=False)))
    assert isinstance(save(server), Unknown)


def test_nothing_changed_and_the_memory_named_is_already_saved(save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, answer(remembered(RECORD, changed=False)))
    assert isinstance(save(server), AlreadySaved)


@pytest.mark.parametrize("look_up", [Reply(200, PAGE), Reply(502, PAGE), Reply(429, PAGE), Reply(401, PAGE), error(503, "access_unavailable")])
def test_without_an_answer_to_the_look_up_nothing_is_written(look_up: Reply, save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, look_up)
    server.answer(REMEMBER, STORED)
    outcome = save(server)
    assert isinstance(outcome, NotSaved)
    assert outcome.reason == "failed"
    assert len(server.requests_to(SEARCH)) > 1 or look_up.status == 401
    assert server.requests_to(REMEMBER) == []


def test_a_server_whose_search_is_broken_still_saves(save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, error(500, "internal_error"))
    server.answer(REMEMBER, STORED)
    assert isinstance(save(server), Saved)


def test_a_look_up_that_fails_is_asked_again_as_long_as_there_is_time(save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    bad = Reply(502, PAGE)
    server.answer(SEARCH, bad, bad, answer(found()), bad, Reply(200, PAGE), answer(found(RECORD)))
    server.answer(REMEMBER, bad)
    outcome = save(server)
    assert isinstance(outcome, Saved)
    assert outcome.by_read_back
    assert len(server.requests_to(SEARCH)) == 6


@pytest.mark.parametrize(("status", "words"), [(429, "in a few minutes"), (503, "in a few minutes"), (502, "do not try again: it may have been stored")])
def test_what_may_pass_invites_a_later_try_and_what_is_lost_does_not(status: int, words: str, save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, Reply(status, PAGE))
    outcome = save(server)
    assert isinstance(outcome, Unknown)
    result = saved(outcome)
    assert (result["outcome"], result["citation"]) == ("unknown", None)
    assert words in result["message"]


def test_a_save_says_no_more_than_the_server_confirmed(save: Save, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    server.answer(SEARCH, answer(found()))
    server.answer(REMEMBER, STORED)
    outcome = save(server)
    assert isinstance(outcome, Saved)
    assert json.dumps(saved(outcome)) == '{"outcome": "saved", "citation": {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}, "message": "Saved."}'
