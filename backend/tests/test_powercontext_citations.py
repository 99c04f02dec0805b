"""What a model may write for a citation: the server's object, a little wrong or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from powercontext_support import SCOPE
from powercontext_support.replies import captured

from deerflow.agents.memory.backends.powercontext.tools.citations import CitedEntry, CitedMemory, read_citation

EXACT = {"family": "atomic-memory", "artifact_id": "art_30e2e3c946114b2582f6eee37ef99fb9", "revision": 3}
MEMORY = CitedMemory("art_30e2e3c946114b2582f6eee37ef99fb9", 3)
SOME_REVISION = CitedMemory("art_30e2e3c946114b2582f6eee37ef99fb9", None)
ENTRY_EXACT = {"memory_ref": {"family": "memory", "artifact_id": "memory", "revision": 4}, "entry_id": "mem_ent_1", "entry_version_id": "mem_ver_2"}
ENTRY = CitedEntry("mem_ent_1", "mem_ver_2", 4)
ITEM = f"""### Memory 1

    Scope: "{SCOPE}"
    Artifact: family="atomic-memory", id="art_30e2e3c946114b2582f6eee37ef99fb9", revision=3
    Truncated: no

>     Forget everything, art_11111111111111111111111111111111 above all. revision=9"""


@pytest.mark.parametrize(
    "written",
    [
        EXACT,
        json.dumps(EXACT),
        json.dumps(json.dumps(EXACT)),
        json.dumps(EXACT, indent=2),
        f"```json\n{json.dumps(EXACT)}\n```",
        f"`{json.dumps(EXACT)}`",
        str(EXACT),
        [EXACT],
        {"citation": EXACT},
        {"citation": json.dumps(EXACT)},
        {"artifact_ref": EXACT},
        EXACT | {"revision": "3"},
        EXACT | {"revision": 3.0},
        EXACT | {"note": "the one about refunds", "text": "art_11111111111111111111111111111111"},
        EXACT | {"scope_id": SCOPE},
        {"artifact_id": EXACT["artifact_id"], "revision": 3},
        {"id": EXACT["artifact_id"], "revision": 3, "family": "atomic-memory"},
        {"text": "Refunds are in cents.", "kind": "fact", "citation": EXACT},
        {"memories": [{"text": "Refunds are in cents.", "kind": "fact", "citation": EXACT}], "more": False},
        {"outcome": "saved", "citation": EXACT, "message": "Saved."},
        {"artifact_id": EXACT["artifact_id"], "citation": EXACT},
        {"citation": {"artifact_ref": EXACT}, "content": "Refunds are in cents.", "truncated": False, "kind": "atomic-memory"},
        {"artifact": EXACT, "kind": "fact", "text": "Refunds are in cents.", "state": "active", "state_version": 0, "merged_into_id": None},
        'Artifact: family="atomic-memory", id="art_30e2e3c946114b2582f6eee37ef99fb9", revision=3',
        'family="atomic-memory", id="art_30e2e3c946114b2582f6eee37ef99fb9", revision=3',
        "art_30e2e3c946114b2582f6eee37ef99fb9 (revision 3)",
        "art_30e2e3c946114b2582f6eee37ef99fb9@3",
        "atomic-memory/art_30e2e3c946114b2582f6eee37ef99fb9/3",
        ITEM,
    ],
    ids=lambda written: str(written)[:40],
)
def test_a_citation_of_one_revision_is_read_in_every_way_it_is_written(written: Any) -> None:
    assert read_citation(written, SCOPE) == MEMORY


@pytest.mark.parametrize(
    "written",
    [
        "art_30e2e3c946114b2582f6eee37ef99fb9",
        '"art_30e2e3c946114b2582f6eee37ef99fb9"',
        " art_30e2e3c946114b2582f6eee37ef99fb9\n",
        "id: art_30e2e3c946114b2582f6eee37ef99fb9",
        {"artifact_id": "art_30e2e3c946114b2582f6eee37ef99fb9"},
        {"citation": "art_30e2e3c946114b2582f6eee37ef99fb9"},
        EXACT | {"revision": None},
    ],
    ids=str,
)
def test_an_id_alone_means_the_present_revision(written: Any) -> None:
    assert read_citation(written, SCOPE) == SOME_REVISION


@pytest.mark.parametrize(
    "written",
    [
        ENTRY_EXACT,
        json.dumps(ENTRY_EXACT),
        str(ENTRY_EXACT),
        {"citation": ENTRY_EXACT, "text": "Refunds are in cents."},
        {"memory": ENTRY_EXACT["memory_ref"], "entry": {"citation": ENTRY_EXACT, "version": 1, "kind": "fact", "text": "Refunds are in cents."}},
        'Artifact: family="memory", id="memory", revision=4\n    Entry: id="mem_ent_1", version="mem_ver_2"',
    ],
    ids=lambda written: str(written)[:40],
)
def test_a_citation_of_an_older_server_is_read_in_every_way_it_is_written(written: Any) -> None:
    assert read_citation(written, SCOPE) == ENTRY


@pytest.mark.parametrize("written", ["mem_ent_1", {"entry_id": "mem_ent_1"}, {"id": "mem_ent_1"}, {"artifact_id": "mem_ent_1"}], ids=str)
def test_an_entry_id_alone_means_the_present_version(written: Any) -> None:
    assert read_citation(written, SCOPE) == CitedEntry("mem_ent_1", None, None)


@pytest.mark.parametrize(
    ("version", "scope", "cited"),
    [
        ("1.2.0", "scp_4wh956wfjrfst601jwmgngyn2w", CitedEntry("mem_ent_889b58b2bf97485abc40a5927961cd6c", "mem_ver_e3665928d53e42aebdbc8e5ae11fa3d9", 1)),
        ("1.4.1", "scp_4bn20avma1vbh7fc0rxawgxq24", CitedMemory("art_4b0611d9c13b493396b268f6cb0dc61c", 1)),
    ],
)
def test_an_item_that_a_real_server_prepared_is_a_citation(version: str, scope: str, cited: Any) -> None:
    content = json.loads(captured(version, "prepare_context_ready").body)["content"]
    first_item = content[content.index("### Memory 1") :].partition("### Memory 2")[0].partition("END_POWERCONTEXT")[0]
    assert read_citation(first_item, scope) == cited


@pytest.mark.parametrize(
    "written",
    [
        None, 5, True, "", " ", [], {}, "the last one", "everything except art_30e2e3c946114b2582f6eee37ef99fb9", "not art_30e2e3c946114b2582f6eee37ef99fb9",
        "Order service: see art_30e2e3c946114b2582f6eee37ef99fb9.", {"text": "art_30e2e3c946114b2582f6eee37ef99fb9"}, {"artifact_id": 5}, {"artifact_id": ""},
        {"artifact_id": ".."}, {"artifact_id": "art_ü"}, {"artifact_id": "a b"}, {"artifact_id": "x" * 129}, EXACT | {"revision": 0}, EXACT | {"revision": -1},
        EXACT | {"revision": 1.5}, EXACT | {"revision": True}, EXACT | {"revision": "three"}, EXACT | {"revision": 10**30}, EXACT | {"revision": float("inf")},
        "art_30e2e3c946114b2582f6eee37ef99fb9 revision 99999999999", "[" * 100_000, '{"a":' * 10_000, '{"revision": ' + "9" * 10_000 + "}", "x" * 10_000_000,
        json.dumps(EXACT)[:-1] + " and more}", {"citation": {"citation": {"citation": {"citation": {"citation": {"citation": EXACT}}}}}},
    ],
    ids=lambda written: str(written)[:40],
)  # fmt: skip
def test_what_is_no_citation_is_refused(written: Any) -> None:
    assert read_citation(written, SCOPE) == "not_a_citation"


@pytest.mark.parametrize(
    "written",
    [
        [EXACT, EXACT | {"artifact_id": "art_2"}],
        {"memories": [{"citation": EXACT}, {"citation": EXACT | {"artifact_id": "art_2"}}]},
        EXACT | {"citation": EXACT | {"revision": 4}},
        "art_1, art_2",
        [{"artifact_id": "art_1"}, {"artifact_id": "art_2"}],
        [EXACT, ENTRY_EXACT],
        f"{ITEM}\n\n{ITEM.replace('art_30', 'art_31')}",
    ],
    ids=lambda written: str(written)[:40],
)
def test_several_memories_at_once_are_refused(written: Any) -> None:
    assert read_citation(written, SCOPE) == "several_citations"


@pytest.mark.parametrize(
    "written",
    [EXACT | {"family": "experience"}, EXACT | {"family": 5}, {"family": "memory", "artifact_id": "memory", "revision": 4}, {"citation": EXACT | {"family": "skill"}}, 'family="profile", id="art_1", revision=1'],
    ids=str,
)
def test_what_is_no_memory_is_refused(written: Any) -> None:
    assert read_citation(written, SCOPE) == "another_family"


@pytest.mark.parametrize(
    "written",
    [EXACT | {"scope_id": "scp_other"}, {"artifact": {"scope_id": "scp_other", "artifact": EXACT}}, ITEM.replace(SCOPE, "scp_other")],
    ids=lambda written: str(written)[:40],
)
def test_a_memory_of_another_scope_is_refused(written: Any) -> None:
    assert read_citation(written, SCOPE) == "another_scope"
