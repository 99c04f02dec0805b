"""Forgetting and correcting on real servers of both generations."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from powercontext_support import OWNER, BuildManager, Configure, binding
from powercontext_support.real_server import RealServer

from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.tools.changing import AlreadySo, Changed, NotChanged
from deerflow.agents.memory.backends.powercontext.tools.correcting import Corrector
from deerflow.agents.memory.backends.powercontext.tools.forgetting import Forgetter

pytest_plugins = ("powercontext_support.fixtures",)

TEXT = "Order service convention: returns are accepted for 30 days."
NEW_TEXT = "Order service convention: returns are accepted for 60 days."
WRITES = ("remember_memory", "replace_artifact", "change_atomic_memory_lifecycle", "revise_memory_entry", "retire_memory_entry")


class Store:
    """A Scope of a real server, and what changes memories in it."""

    def __init__(self, server: RealServer, scope_id: str, version: str) -> None:
        self.server = server
        self.scope_id = scope_id
        self.version = version
        self.corrector = Corrector(load_settings())
        self.forgetter = Forgetter(load_settings())

    def remember(self, text: str = TEXT, kind: str = "convention", scope_id: str | None = None) -> dict[str, Any]:
        """Store a memory as another client would; return its citation."""
        answer: Any = self.server.remember(scope_id or self.scope_id, kind, text)
        citation = answer["records"][0]["artifact"] if "records" in answer else answer["entry"]["citation"]
        return dict(citation)

    def memories(self) -> list[tuple[str, str]]:
        """Return kind and text of what the Scope holds and has not forgotten."""
        body = {"scope_id": self.scope_id}
        entries = self.server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()["entries"]
        return sorted((entry["kind"], entry["text"]) for entry in entries)

    def writes(self) -> list[int]:
        """Return how often the server was asked for each of ``WRITES``."""
        return [self.server.count_requests(operation) for operation in WRITES]

    def restore(self, citation: Any) -> None:
        """Bring a forgotten memory back, as the operator would."""
        body = {"scope_id": self.scope_id, "target": {"artifact_id": citation["artifact_id"]}}
        self.server.request("POST", "/v1/atomic-memory/restorations", body).raise_for_status()


@pytest.fixture(params=["1.4.1", "1.2.0"])
def store(request: pytest.FixtureRequest, powercontext_servers: Callable[[str], RealServer], powercontext_environment: Configure) -> Iterator[Store]:
    server = powercontext_servers(request.param)
    scope_id = server.create_scope(f"changing {uuid4()}")
    powercontext_environment(base_url=server.base_url, scope_id=scope_id, token=server.token)
    yield Store(server, scope_id, request.param)
    shared_client(load_settings()).close()


def dump(outcome: Any) -> Any:
    return outcome.citation.model_dump()


def test_a_forgotten_memory_is_gone_from_the_store_and_from_recall(store: Store, powercontext_manager: BuildManager) -> None:
    citation = store.remember()
    outcome = store.forgetter.forget(binding(), citation)
    assert isinstance(outcome, Changed)
    assert (outcome.text, outcome.by_read_back) == (TEXT, False)
    assert store.memories() == []
    manager = powercontext_manager(store.server.base_url, scope_id=store.scope_id, token=store.server.token)
    assert manager.get_context(OWNER, query="How long are returns accepted in the order service?") == ""


def test_what_is_forgotten_is_not_forgotten_again(store: Store) -> None:
    citation = store.remember()
    store.forgetter.forget(binding(), citation)
    before = store.writes()
    outcome = store.forgetter.forget(binding(), citation)
    assert isinstance(outcome, AlreadySo)
    assert outcome.text == TEXT
    assert store.writes() == before


def test_a_corrected_memory_has_the_new_text_its_kind_and_its_id(store: Store, powercontext_manager: BuildManager) -> None:
    citation = store.remember()
    outcome = store.corrector.correct(binding(), citation, f"  {NEW_TEXT}\n")
    assert isinstance(outcome, Changed)
    assert (outcome.text, outcome.by_read_back) == (TEXT, False)
    assert store.memories() == [("convention", NEW_TEXT)]
    name = "artifact_id" if store.version == "1.4.1" else "entry_id"
    assert dump(outcome)[name] == citation[name]
    manager = powercontext_manager(store.server.base_url, scope_id=store.scope_id, token=store.server.token)
    context = manager.get_context(OWNER, query="How long are returns accepted in the order service?")
    assert NEW_TEXT in context
    assert TEXT not in context


def test_the_citation_of_a_correction_can_be_corrected_again_and_forgotten(store: Store) -> None:
    first = store.corrector.correct(binding(), store.remember(), NEW_TEXT)
    second = store.corrector.correct(binding(), dump(first), TEXT)
    assert isinstance(second, Changed)
    assert isinstance(store.forgetter.forget(binding(), dump(second)), Changed)
    assert store.memories() == []


def test_a_memory_that_says_so_already_is_left_alone(store: Store) -> None:
    citation = store.remember()
    before = store.writes()
    outcome = store.corrector.correct(binding(), citation, f" {TEXT} ")
    assert isinstance(outcome, AlreadySo)
    assert dump(outcome) == citation
    assert store.writes() == before


def test_a_forgotten_memory_is_never_corrected(store: Store) -> None:
    citation = store.remember()
    store.forgetter.forget(binding(), citation)
    before = store.writes()
    outcome = store.corrector.correct(binding(), citation, NEW_TEXT)
    assert isinstance(outcome, NotChanged)
    assert (outcome.reason, outcome.text) == ("is_forgotten", TEXT)
    assert store.writes() == before


def test_other_writes_to_the_scope_do_not_spoil_a_citation(store: Store) -> None:
    citation = store.remember()
    store.remember("Zebra houses open at five.", "fact")
    assert isinstance(store.corrector.correct(binding(), citation, NEW_TEXT), Changed)
    store.remember("Giraffe houses open at six.", "fact")
    assert store.memories() == [("convention", NEW_TEXT), ("fact", "Giraffe houses open at six."), ("fact", "Zebra houses open at five.")]


def test_a_memory_that_was_changed_meanwhile_is_neither_forgotten_nor_corrected(store: Store) -> None:
    citation = store.remember()
    now = dump(store.corrector.correct(binding(), citation, NEW_TEXT))
    before = store.writes()
    for outcome in (store.forgetter.forget(binding(), citation), store.corrector.correct(binding(), citation, "Returns: 90 days.")):
        assert isinstance(outcome, NotChanged)
        assert (outcome.reason, outcome.text, dump(outcome)) == ("changed_meanwhile", NEW_TEXT, now)
    assert store.writes() == before


def test_a_memory_that_says_again_what_the_citation_meant_is_changed(store: Store) -> None:
    citation = store.remember()
    changed = store.corrector.correct(binding(), citation, NEW_TEXT)
    store.corrector.correct(binding(), dump(changed), TEXT)
    assert isinstance(store.forgetter.forget(binding(), citation), Changed)


def test_what_the_operator_restored_can_be_forgotten_with_the_same_citation(store: Store) -> None:
    if store.version == "1.2.0":
        pytest.skip("1.2.0 cannot restore")
    citation = store.remember()
    store.forgetter.forget(binding(), citation)
    store.restore(citation)
    assert store.memories() == [("convention", TEXT)]
    assert isinstance(store.forgetter.forget(binding(), citation), Changed)
    assert store.memories() == []


def test_a_citation_that_is_written_a_little_wrong_will_do(store: Store) -> None:
    name = "artifact_id" if store.version == "1.4.1" else "entry_id"
    first, second, third = (store.remember(f"{TEXT} {number}") for number in range(3))
    for written in (json.dumps(first), second[name], {"text": TEXT, "kind": "convention", "citation": third}):
        assert isinstance(store.forgetter.forget(binding(), written), Changed)
    assert store.memories() == []


def test_what_is_not_there_to_be_changed_is_refused_without_a_write(store: Store) -> None:
    other_scope = store.server.create_scope(f"another {uuid4()}")
    elsewhere = store.remember(scope_id=other_scope)
    there = store.remember()
    made_up: dict[str, Any] = {"family": "atomic-memory", "artifact_id": "art_" + "0" * 32, "revision": 1}
    old_made_up = {"memory_ref": {"family": "memory", "artifact_id": "memory", "revision": 1}, "entry_id": "mem_ent_0", "entry_version_id": "mem_ver_0"}
    wrong_version = there | ({"revision": 7} if store.version == "1.4.1" else {"entry_version_id": "mem_ver_0"})
    before = store.writes()
    for citation in (elsewhere, made_up, old_made_up, wrong_version):
        assert getattr(store.forgetter.forget(binding(), citation), "reason", None) == "no_such_memory"
        assert getattr(store.corrector.correct(binding(), citation, NEW_TEXT), "reason", None) == "no_such_memory"
    refusals: tuple[tuple[Any, str], ...] = (
        ({"scope_id": other_scope, "artifact": elsewhere}, "another_scope"),
        ({"family": "experience", "artifact_id": "art_1", "revision": 1}, "another_family"),
        ("x" * 1_000_000, "not_a_citation"),
        ([there, elsewhere], "several_citations"),
    )
    for citation, reason in refusals:
        assert store.forgetter.forget(binding(), citation) == NotChanged(reason)  # type: ignore[arg-type]
        assert store.corrector.correct(binding(), citation, NEW_TEXT) == NotChanged(reason)  # type: ignore[arg-type]
    assert store.writes() == before
    assert store.memories() == [("convention", TEXT)]


@pytest.mark.parametrize(("text", "reason"), [("", "empty"), (None, "empty"), (7, "not_a_string"), ("退" * 2731, "too_long"), ("half \ud83d", "not_unicode")], ids=lambda value: str(value)[:9])
def test_a_text_that_cannot_be_stored_is_refused_without_a_request(text: Any, reason: str, store: Store) -> None:
    citation = store.remember()
    before = store.writes()
    assert store.corrector.correct(binding(), citation, text) == NotChanged(reason)  # type: ignore[arg-type]
    assert store.writes() == before


def test_of_two_corrections_at_once_one_wins_and_the_other_is_told(store: Store) -> None:
    for number in range(5):
        citation = store.remember(f"{TEXT} {number}")
        outcomes: dict[str, Any] = {}
        barrier = threading.Barrier(2)

        def correct(text: str, citation: Any = citation, outcomes: Any = outcomes, barrier: Any = barrier) -> None:
            barrier.wait()
            outcomes[text] = store.corrector.correct(binding(), citation, text)

        texts = [f"Returns {number}: 60 days.", f"Returns {number}: 90 days."]
        threads = [threading.Thread(target=correct, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        [winner] = [text for text in texts if isinstance(outcomes[text], Changed)]
        [told] = [outcomes[text] for text in texts if text != winner]
        assert isinstance(told, NotChanged)
        assert (told.reason, told.text) == ("changed_meanwhile", winner)
        assert ("convention", winner) in store.memories()


def test_of_a_correction_and_a_forgetting_at_once_no_claim_is_false(store: Store) -> None:
    for number in range(5):
        citation = store.remember(f"{TEXT} {number}")
        outcomes: dict[str, Any] = {}
        barrier = threading.Barrier(2)

        def call(name: str, change: Callable[[], Any], outcomes: Any = outcomes, barrier: Any = barrier) -> None:
            barrier.wait()
            outcomes[name] = change()

        changes: dict[str, Callable[[], Any]] = {
            "correct": lambda citation=citation, number=number: store.corrector.correct(binding(), citation, f"Returns {number}: 60 days."),  # type: ignore[misc]
            "forget": lambda citation=citation: store.forgetter.forget(binding(), citation),  # type: ignore[misc]
        }
        threads = [threading.Thread(target=call, args=item) for item in changes.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        there = ("convention", f"Returns {number}: 60 days.") in store.memories()
        assert isinstance(outcomes["correct"], Changed) == there
        assert isinstance(outcomes["forget"], Changed) != there


@pytest.mark.parametrize(("changes", "reason"), [({"token": "wrong"}, "token"), ({"scope_id": "scp_nobody"}, "scope")])
def test_a_refused_binding_changes_nothing(changes: dict[str, str], reason: str, store: Store, powercontext_environment: Configure) -> None:
    citation = store.remember()
    powercontext_environment(**({"base_url": store.server.base_url, "scope_id": store.scope_id, "token": store.server.token} | changes))
    for outcome in (Forgetter(load_settings()).forget(binding(), citation), Corrector(load_settings()).correct(binding(), citation, NEW_TEXT)):
        assert isinstance(outcome, NotChanged)
        assert outcome.reason == reason
    shared_client(load_settings()).close()
    assert store.memories() == [("convention", TEXT)]
