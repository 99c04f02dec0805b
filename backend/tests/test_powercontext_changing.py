"""Forgetting and correcting against servers and networks that misbehave: every outcome is the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from powercontext_support import SCOPE, Configure, StartBytes, StartHTTP, binding
from powercontext_support.byte_server import Peer, Request
from powercontext_support.replies import Reply, answer, error

from deerflow.agents.memory.backends.powercontext.api.models import ArtifactReference
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.changing import AlreadySo, Changed, NotChanged, Unknown
from deerflow.agents.memory.backends.powercontext.tools.correcting import Corrector
from deerflow.agents.memory.backends.powercontext.tools.forgetting import Forgetter

pytest_plugins = ("powercontext_support.fixtures",)

ARTIFACT = f"/v1/scopes/{SCOPE}/artifacts/atomic-memory/art_1"
STATE = f"{ARTIFACT}/state"
LIFECYCLE = "/v1/atomic-memory/lifecycle"
OLD, NEW = "Returns: 30 days.", "Returns: 60 days."
CITATION = {"family": "atomic-memory", "artifact_id": "art_1", "revision": 1}


def reference(revision: int) -> ArtifactReference:
    return ArtifactReference(family="atomic-memory", artifact_id="art_1", revision=revision)


def state(revision: int = 1, version: int = 0, name: str = "active") -> Reply:
    return answer({"artifact": CITATION | {"revision": revision}, "state": name, "state_version": version, "merged_into_id": None})


def revision(number: int, text: str, kind: str = "fact", **changes: Any) -> Reply:
    return answer({"scope_id": SCOPE} | CITATION | {"revision": number, "content": {"kind": kind, "text": text}} | changes)


def forgotten(number: int = 1, version: int = 1, name: str = "forgotten", **changes: Any) -> Reply:
    return answer({"changed": True, "records": [{"artifact": CITATION | {"revision": number}, "state": name, "state_version": version} | changes]})


LOST = Reply(502, b"<html>")  # a proxy's: what became of the request, it does not know


@pytest.fixture
def changing(powercontext_environment: Configure) -> Iterator[Callable[[str], tuple[Corrector, Forgetter]]]:
    clients = []

    def connect(base_url: str, seconds: str = "2.0") -> tuple[Corrector, Forgetter]:
        powercontext_environment(base_url=base_url, remember_timeout_seconds=seconds)
        clients.append(shared_client(load_settings()))
        return Corrector(load_settings()), Forgetter(load_settings())

    yield connect
    for client in clients:
        client.close()


def serve(server: Any, *, states: list[Reply], revisions: dict[int, Reply], puts: list[Reply] | None = None, forgets: list[Reply] | None = None) -> None:
    """Answer each question for the state with the next of ``states``, and so on; the last one from then on."""
    server.answer(STATE, *states)
    for number, reply in revisions.items():
        server.answer(f"{ARTIFACT}/revisions/{number}", reply)
    if puts:
        server.answer(ARTIFACT, *puts)
    if forgets:
        server.answer(LIFECYCLE, *forgets)


def test_the_requests_are_those_of_the_design(changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state()], revisions={1: revision(1, OLD)}, puts=[revision(2, NEW)], forgets=[forgotten()])
    corrector, forgetter = changing(server.base_url)
    assert corrector.correct(binding(), CITATION, NEW) == Changed(OLD, reference(2))
    assert forgetter.forget(binding(), CITATION) == Changed(OLD, reference(1))
    [put], [forget] = server.requests_to(ARTIFACT), server.requests_to(LIFECYCLE)
    assert (put.method, put.headers["If-Match"], put.json) == ("PUT", '"revision:1"', {"content": {"kind": "fact", "text": NEW}})
    assert forget.json == {"scope_id": SCOPE, "target": {"artifact": CITATION, "state_version": 0}, "state": "forgotten"}


@pytest.mark.parametrize(
    ("puts", "states", "revisions", "outcome"),
    [
        ([error(412, "revision_conflict")], [state(), state(2)], {1: OLD, 2: "Returns: 90 days."}, NotChanged("changed_meanwhile", None, "Returns: 90 days.", reference(2))),
        ([error(412, "revision_conflict")], [state(), state(2)], {1: OLD, 2: NEW}, AlreadySo(NEW, reference(2))),
        ([error(412, "revision_conflict"), revision(3, NEW)], [state(), state(2)], {1: OLD, 2: OLD}, Changed(OLD, reference(3))),
        ([error(412, "revision_conflict")], [state(), state(1, 1, "forgotten")], {1: OLD}, NotChanged("is_forgotten", None, OLD, reference(1))),
        ([LOST], [state(), state(2)], {1: OLD, 2: NEW}, Changed(OLD, reference(2), by_read_back=True)),
        ([LOST], [state(), state(2)], {1: OLD, 2: "Returns: 90 days."}, NotChanged("changed_meanwhile", None, "Returns: 90 days.", reference(2))),
        ([LOST], [state(), state(2, 1, "forgotten")], {1: OLD, 2: NEW}, NotChanged("is_forgotten", None, NEW, reference(2))),
        ([revision(2, NEW)], [state(), state(2, 1, "forgotten")], {1: OLD, 2: NEW}, NotChanged("is_forgotten", None, NEW, reference(2))),
        ([revision(2, NEW)], [state(), error(500, "internal_error")], {1: OLD, 2: NEW}, Changed(OLD, reference(2))),
        ([revision(2, "Another text.")], [state(), state(2)], {1: OLD, 2: NEW}, Changed(OLD, reference(2), by_read_back=True)),
        ([revision(2, NEW, scope_id="scp_other")], [state(), state(2)], {1: OLD, 2: NEW}, Changed(OLD, reference(2), by_read_back=True)),
        ([revision(1, NEW)], [state(), state(2)], {1: OLD, 2: NEW}, Changed(OLD, reference(2), by_read_back=True)),
        ([answer({})], [state(), state(2)], {1: OLD, 2: NEW}, Changed(OLD, reference(2), by_read_back=True)),
    ],
    ids=range(13),
)  # fmt: skip
def test_a_correction_is_what_the_server_shows(puts: list[Reply], states: list[Reply], revisions: dict[int, str], outcome: Any, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=states, revisions={number: revision(number, text) for number, text in revisions.items()}, puts=puts)
    corrector, _ = changing(server.base_url)
    assert corrector.correct(binding(), CITATION, NEW) == outcome
    assert len(server.requests_to(ARTIFACT)) == len(puts)


@pytest.mark.parametrize(
    ("forgets", "states", "revisions", "outcome"),
    [
        ([error(409, "revision_conflict")], [state(), state(2)], {1: OLD, 2: NEW}, NotChanged("changed_meanwhile", None, NEW, reference(2))),
        ([error(409, "revision_conflict"), forgotten(2)], [state(), state(2)], {1: OLD, 2: OLD}, Changed(OLD, reference(2))),
        ([error(409, "atomic_memory_changed")], [state(), state(1, 1, "forgotten")], {1: OLD}, AlreadySo(OLD, reference(1))),
        ([error(409, "atomic_memory_changed"), forgotten(1, 3)], [state(), state(1, 2)], {1: OLD}, Changed(OLD, reference(1))),
        ([LOST], [state(), state(1, 1, "forgotten")], {1: OLD}, Changed(OLD, reference(1), by_read_back=True)),
        ([LOST, forgotten(2)], [state(), state(2)], {1: OLD, 2: OLD}, Changed(OLD, reference(2))),
        ([LOST], [state(), state(2)], {1: OLD, 2: NEW}, NotChanged("changed_meanwhile", None, NEW, reference(2))),
        ([forgotten(name="active")], [state(), state(1, 1, "forgotten")], {1: OLD}, Changed(OLD, reference(1), by_read_back=True)),
        ([forgotten(2)], [state(), state(1, 1, "forgotten")], {1: OLD}, Changed(OLD, reference(1), by_read_back=True)),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_forgetting_is_what_the_server_shows(forgets: list[Reply], states: list[Reply], revisions: dict[int, str], outcome: Any, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=states, revisions={number: revision(number, text) for number, text in revisions.items()}, forgets=forgets)
    _, forgetter = changing(server.base_url)
    assert forgetter.forget(binding(), CITATION) == outcome
    assert len(server.requests_to(LIFECYCLE)) == len(forgets)


@pytest.mark.parametrize("write", [LOST, error(500, "internal_error"), error(503, "access_unavailable"), answer({}), Reply(504)], ids=range(5))
def test_a_write_that_nothing_shows_is_unknown_and_not_repeated(write: Reply, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state()], revisions={1: revision(1, OLD)}, puts=[write], forgets=[write])
    for outcome in change_both(changing(server.base_url)):
        assert isinstance(outcome, Unknown)
        assert (outcome.text, outcome.citation) == (OLD, reference(1))
    assert (len(server.requests_to(ARTIFACT)), len(server.requests_to(LIFECYCLE))) == (1, 1)


@pytest.mark.parametrize("lost", [LOST, error(500, "internal_error")], ids=["proxy", "server"])
def test_a_write_whose_read_back_fails_is_unknown(lost: Reply, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state(), lost], revisions={1: revision(1, OLD)}, puts=[LOST])
    corrector, _ = changing(server.base_url)
    assert isinstance(corrector.correct(binding(), CITATION, NEW), Unknown)


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (error(403, "forbidden"), "not_yours"), (error(401, "unauthorized"), "token"), (error(503, "server_overloaded"), "overloaded"),
        (error(422, "invalid_request"), "refused"), (error(413, "request_too_large"), "refused"), (error(404, "scope_not_found"), "scope"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.status,
)  # fmt: skip
def test_a_refused_write_has_not_happened_and_says_why(write: Reply, reason: str, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state()], revisions={1: revision(1, OLD)}, puts=[write], forgets=[write])
    for outcome in change_both(changing(server.base_url)):
        assert isinstance(outcome, NotChanged)
        assert outcome.reason == reason
    assert (len(server.requests_to(ARTIFACT)), len(server.requests_to(LIFECYCLE))) == (1, 1)


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (error(401, "unauthorized"), "token"), (error(403, "forbidden"), "token"), (error(404, "scope_not_found"), "scope"), (error(404, "artifact_not_found"), "no_such_memory"),
        (Reply(404, b'{"detail":"Not Found"}'), "no_such_memory"), (Reply(404, b'{"detail":"Not Found"}', {"X-PowerContext-Request-ID": ""}), "failed"),
        (error(503, "server_overloaded"), "overloaded"), (error(500, "internal_error"), "failed"),
        (Reply(200, b"<html>"), "failed"), (state(name="melted"), "failed"), (answer({"artifact": CITATION | {"artifact_id": "art_2"}, "state": "active", "state_version": 0}), "failed"),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_look_that_fails_ends_it_without_a_write(look: Reply, reason: str, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[look], revisions={})
    for outcome in change_both(changing(server.base_url)):
        assert isinstance(outcome, NotChanged)
        assert outcome.reason == reason


def test_a_look_that_failed_once_is_asked_again(changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[error(500, "internal_error"), state()], revisions={1: revision(1, OLD)}, forgets=[forgotten()])
    assert changing(server.base_url)[1].forget(binding(), CITATION) == Changed(OLD, reference(1))


@pytest.mark.parametrize("name", ["merged", "retired"])
def test_a_memory_the_server_set_aside_is_left_alone(name: str, changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state(1, 1, name)], revisions={1: revision(1, OLD)})
    for outcome in change_both(changing(server.base_url)):
        assert outcome == NotChanged("is_set_aside", None, OLD, reference(1))


def test_a_memory_that_others_keep_changing_is_given_up_after_four_tries(changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state()], revisions={1: revision(1, OLD)}, puts=[error(412, "revision_conflict")], forgets=[error(409, "atomic_memory_changed")])
    for outcome in change_both(changing(server.base_url)):
        assert outcome == NotChanged("contended")
    assert (len(server.requests_to(ARTIFACT)), len(server.requests_to(LIFECYCLE))) == (4, 4)


def test_an_id_alone_means_what_the_first_look_showed(changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state(), state(2)], revisions={1: revision(1, OLD), 2: revision(2, NEW)}, forgets=[error(409, "revision_conflict")])
    assert changing(server.base_url)[1].forget(binding(), "art_1") == NotChanged("changed_meanwhile", None, NEW, reference(2))


def test_a_server_that_is_not_there_has_changed_nothing(changing: Any) -> None:
    for outcome in change_both(changing("http://127.0.0.1:9")):
        assert isinstance(outcome, NotChanged)
        assert outcome.reason == "unreachable"


def test_a_cancelled_call_begins_no_write(changing: Any, powercontext_bytes: StartBytes) -> None:
    deadline = Deadline.after(5)

    def script(request: Request, peer: Peer) -> Reply:
        if request.path.endswith("/state"):
            return answer({"artifact": CITATION, "state": "active", "state_version": 0})
        deadline.cancel()  # while the second question is under way
        return answer({"scope_id": SCOPE} | CITATION | {"content": {"kind": "fact", "text": OLD}})

    server = powercontext_bytes(script)
    outcome = changing(server.base_url)[1].forget(binding(), CITATION, deadline=deadline)
    assert isinstance(outcome, NotChanged)
    assert outcome.reason == "shutdown"
    assert [request.method for request in server.requests] == ["GET", "GET"]


def test_a_silent_write_leaves_time_to_read_back(changing: Any, powercontext_bytes: StartBytes) -> None:
    wrote = False

    def script(request: Request, peer: Peer) -> Reply | None:
        nonlocal wrote
        if request.method == "POST":
            wrote = True
            peer.hang()
            return None
        if request.path.endswith("/state"):
            return answer({"artifact": CITATION, "state": "forgotten" if wrote else "active", "state_version": int(wrote)})
        return answer({"scope_id": SCOPE} | CITATION | {"content": {"kind": "fact", "text": OLD}})

    server = powercontext_bytes(script)
    outcome = changing(server.base_url)[1].forget(binding(), CITATION, deadline=Deadline.after(3))
    assert outcome == Changed(OLD, reference(1), by_read_back=True)


def test_no_outcome_shows_a_text(changing: Any, powercontext_http: StartHTTP) -> None:
    server = powercontext_http()
    serve(server, states=[state()], revisions={1: revision(1, OLD)}, puts=[LOST], forgets=[forgotten()])
    shown = repr(change_both(changing(server.base_url)))
    assert OLD not in shown
    assert NEW not in shown


def change_both(changing: tuple[Corrector, Forgetter]) -> list[Any]:
    corrector, forgetter = changing
    return [corrector.correct(binding(), CITATION, NEW), forgetter.forget(binding(), CITATION)]
