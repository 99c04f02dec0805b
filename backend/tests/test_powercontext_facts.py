"""Memories as DeerFlow's facts: ids that carry a citation through JSON and URLs, times that are real, nothing made up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deerflow.agents.memory.backends.powercontext.api.models import ArtifactReference, EntryCitation
from deerflow.agents.memory.backends.powercontext.management.facts import citation_of, document, fact, fact_id

NEW = ArtifactReference(family="atomic-memory", artifact_id="art_53a117277fda498f9d2a45c048908bd6", revision=2)
OLD = EntryCitation(
    memory_ref=ArtifactReference(family="memory", artifact_id="memory", revision=4),
    entry_id="mem_ent_139b7b58ed934d8a94cea0f0a28312fd",
    entry_version_id="mem_ver_b811b6fbc30e4b4f9b89787ed7ac76d0",
)
IDENTIFIERS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)
REFERENCES = st.builds(ArtifactReference, family=IDENTIFIERS, artifact_id=IDENTIFIERS, revision=st.integers(1, 2**31 - 1))


def test_an_id_is_short_and_readable() -> None:
    assert fact_id(NEW) == "atomic-memory@art_53a117277fda498f9d2a45c048908bd6@2"
    assert fact_id(OLD) == "memory@memory@4@mem_ent_139b7b58ed934d8a94cea0f0a28312fd@mem_ver_b811b6fbc30e4b4f9b89787ed7ac76d0"


@given(REFERENCES | st.builds(EntryCitation, memory_ref=REFERENCES, entry_id=IDENTIFIERS, entry_version_id=IDENTIFIERS))
def test_an_id_carries_the_whole_citation_through_json_and_urls(citation: ArtifactReference | EntryCitation) -> None:
    identifier = json.loads(json.dumps(fact_id(citation)))
    assert citation_of(identifier) == citation.model_dump()
    assert unquote(quote(identifier, safe="")) == identifier
    assert "/" not in identifier


@pytest.mark.parametrize("identifier", ["", "fact_1", "a@b", "a@b@c", "a@b@-1", "a@b@1.5", "a@b@²", "a@b@" + "9" * 11, "a@b@1@c", "a@b@1@c@d@e", None, 5, ["a@b@1"]])
def test_any_other_id_is_none_of_ours(identifier: object) -> None:
    assert citation_of(identifier) is None


def test_a_fact_says_what_the_server_said_and_no_more() -> None:
    assert fact(NEW, "Refunds are in cents.", "convention", "2026-12-03T09:00:22.707457Z") == {
        "id": "atomic-memory@art_53a117277fda498f9d2a45c048908bd6@2",
        "content": "Refunds are in cents.",
        "category": "convention",
        "confidence": None,
        "createdAt": "2026-12-03T09:00:22.707457Z",
        "source": "powercontext",
    }
    assert fact(OLD, "x", None)["createdAt"] == ""


def test_a_document_is_as_new_as_its_newest_fact() -> None:
    facts = [fact(NEW, "a", "fact", time) for time in ("2026-12-01T00:00:00Z", "2026-12-03T00:00:00Z", None)]
    made = document(facts)
    assert made["lastUpdated"] == "2026-12-03T00:00:00Z"
    assert [item["content"] for item in made["facts"]] == ["a", "a", "a"]
    assert all("confidence" not in item for item in made["facts"])
    assert made["user"]["topOfMind"]["summary"] == ""


def test_a_document_without_times_says_when_it_was_read() -> None:
    assert document([], now=datetime(2026, 12, 3, 9, tzinfo=UTC))["lastUpdated"] == "2026-12-03T09:00:00Z"


def test_a_document_that_is_not_whole_says_how_many_there_are() -> None:
    made = document([fact(NEW, "a", "fact")], total=1234)
    assert made["user"]["topOfMind"]["summary"] == "PowerContext holds 1234 memories; 1 of them are listed here."
