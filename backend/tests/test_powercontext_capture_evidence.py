"""What is new in a conversation, under which id it goes, and in which parts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

pytest.importorskip("langchain_core")
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from powercontext_support.transcripts import answer, call, first_turn, user

from deerflow.agents.memory.backends.powercontext.capture.evidence import Evidence, Origin, estimated_tokens, news, parts, sources
from deerflow.agents.memory.backends.powercontext.capture.selection import Said, read_turns

ORIGIN = Origin("installation", "alice", "thread-1")
ONE, TWO, THREE = "The depot opens at six.", "The ferry leaves at noon.", "The bakery closes on Mondays."


class Reader:
    """Looks at one thread again and again, as the outbox does."""

    def __init__(self) -> None:
        self.seen: set[tuple[bytes, bytes]] = set()

    def look(self, *messages: BaseMessage, answers: bool = True, compaction: bool = False, saved: bool = False) -> list[str]:
        found = list(news(read_turns(messages, answers=answers), ORIGIN, self.seen, compaction=compaction, saved_in_open_turn=saved))
        self.seen |= {(message.key, message.mark) for message in found}
        return [source.content for message in found for source in message.sources]


def turn(text: str, name: str) -> list[BaseMessage]:
    return [user(text, name), answer(f"Noted for you: {text}", name)]


def test_every_turn_is_new_once() -> None:
    reader = Reader()
    assert reader.look(*turn(ONE, "a")) == [ONE, f"Noted for you: {ONE}"]
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b")) == [TWO, f"Noted for you: {TWO}"]
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b")) == []
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b"), *turn(THREE, "c")) == [THREE, f"Noted for you: {THREE}"]


def test_what_was_said_before_capture_was_switched_on_stays() -> None:
    reader = Reader()
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b"), answers=False) == [TWO]
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b"), *turn(THREE, "c"), answers=False) == [THREE]


def test_answers_from_before_they_were_captured_stay() -> None:
    reader = Reader()
    assert reader.look(*turn(ONE, "a"), answers=False) == [ONE]
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b")) == [TWO, f"Noted for you: {TWO}"]


def test_a_turn_whose_run_was_interrupted_comes_with_the_next() -> None:
    reader = Reader()
    reader.look(*turn(ONE, "a"))
    assert reader.look(*turn(ONE, "a"), user(TWO, "b"), *turn(THREE, "c")) == [TWO, THREE, f"Noted for you: {THREE}"]


def test_a_changed_message_is_another_source_and_the_old_one_no_second_time() -> None:
    reader = Reader()
    reader.look(*turn(ONE, "a"), answers=False)
    reader.look(*turn(ONE, "a"), *turn(TWO, "b"), answers=False)
    assert reader.look(user(f"{ONE} Not on Sundays.", "a"), *turn(TWO, "b"), answers=False) == [f"{ONE} Not on Sundays."]
    assert reader.look(user(ONE, "a"), *turn(TWO, "b"), answers=False) == []


def test_an_edited_turn_under_a_new_id_is_new() -> None:
    reader = Reader()
    reader.look(*turn(ONE, "a"))
    assert reader.look(*turn(TWO, "a2")) == [TWO, f"Noted for you: {TWO}"]


def test_a_regenerated_answer_is_new_and_its_question_is_not() -> None:
    reader = Reader()
    reader.look(*first_turn(ONE, "a"), answer("It is open then, at six.", "x"))
    assert reader.look(user(ONE, "a"), answer("It opens at six, as you say.", "y")) == ["It opens at six, as you say."]


def test_a_message_whose_id_the_host_swaps_is_not_new() -> None:
    reader = Reader()
    assert reader.look(user(ONE, "a"), answers=False) == [ONE]
    assert reader.look(*first_turn(ONE, "a"), *turn(TWO, "b"), answers=False) == [TWO]


def test_compaction_takes_nothing_twice_and_loses_nothing() -> None:
    reader = Reader()
    reader.look(*turn(ONE, "a"), answers=False)
    assert reader.look(*turn(ONE, "a"), user(TWO, "b"), answers=False, compaction=True) == [TWO]
    assert reader.look(*turn(THREE, "c"), answers=False) == [THREE]
    assert reader.look(*turn(THREE, "c"), *turn(ONE, "d"), answers=False) == [ONE]


def test_compaction_of_a_thread_from_before_capture_takes_nothing_old() -> None:
    reader = Reader()
    assert reader.look(*turn(ONE, "a"), *turn(TWO, "b"), compaction=True) == []
    assert reader.look(*turn(THREE, "c"), answers=False) == [THREE]


def test_compaction_in_the_first_run_takes_what_that_run_was_asked() -> None:
    assert Reader().look(user(ONE, "a"), *call("bash", "b"), compaction=True) == [ONE]


def test_a_turn_that_saved_something_stays_when_compaction_took_the_tools_call() -> None:
    reader = Reader()
    reader.look(*turn(ONE, "a"))
    assert reader.look(user(TWO, "b"), answer("I saved that for you.", "x"), saved=True) == []
    assert reader.look(user(TWO, "b"), answer("I saved that for you.", "x"), *turn(THREE, "c")) == [THREE, f"Noted for you: {THREE}"]


def test_a_turn_that_saved_something_stays_when_compaction_takes_the_call_later() -> None:
    reader = Reader()
    assert reader.look(user(TWO, "b"), *call("remember", "r"), answer("I saved that for you.", "x")) == []
    assert reader.look(user(TWO, "b"), *turn(THREE, "c"), answers=False) == [THREE]


def test_a_message_without_an_id_is_told_by_its_text() -> None:
    reader = Reader()
    nameless = user(ONE, "a").model_copy(update={"id": None})
    assert reader.look(nameless, answers=False) == [ONE]
    assert reader.look(nameless, *turn(TWO, "b"), answers=False) == [TWO]


def source_of(text: str = ONE, name: str = "a", origin: Origin = ORIGIN) -> Evidence:
    [source] = sources(Said(name, "user", text), origin)
    return source


def test_a_source_is_the_same_whenever_and_wherever_it_is_made() -> None:
    source = source_of()
    assert source.source_id == "deerflow-85ad27e52a2373ce79784b8af400778e1ea34dba09260ffa3fe18794529dfdd2"
    assert source.metadata == {"host": "deerflow", "role": "user", "thread": "9186ceeda157753dae16b5ffcc3a8f45"}
    assert source.content == ONE


@pytest.mark.parametrize(
    "other",
    [
        source_of(text=TWO),
        source_of(name="b"),
        source_of(origin=Origin("installation", "alice", "thread-2")),
        source_of(origin=Origin("installation", "bob", "thread-1")),
        source_of(origin=Origin("another", "alice", "thread-1")),
        source_of(origin=Origin("installation", "alicethread-", "1")),
    ],
)
def test_anything_else_is_another_source(other: Evidence) -> None:
    assert other.source_id != source_of().source_id


def test_no_id_of_the_host_and_no_person_can_be_read_in_a_source() -> None:
    source = source_of(name="message-id-7")
    assert not any(word in json.dumps([source.source_id, source.metadata]) for word in ("alice", "thread-1", "message-id-7", "installation"))
    assert "alice" not in repr(ORIGIN)
    assert ONE not in repr(source)


def test_a_long_text_goes_in_numbered_parts_cut_at_paragraphs() -> None:
    paragraph = "字" * 1500
    cut = list(sources(Said("a", "user", "\n\n".join([paragraph] * 5)), ORIGIN))
    assert [source.content for source in cut] == [f"{paragraph}\n\n{paragraph}", f"{paragraph}\n\n{paragraph}", paragraph]
    assert [(source.metadata["part"], source.metadata["parts"]) for source in cut] == [(1, 3), (2, 3), (3, 3)]
    assert len({source.source_id for source in cut}) == 3


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("One line.\nAnother line.", 5, ["One line.", "Another line."]),
        ("First it is so. Then it is not.", 6, ["First it is so.", "Then it is not."]),
        ("第一句话。第二句话。", 8, ["第一句话。", "第二句话。"]),
        ("aaaa bbbb cccc dddd", 4, ["aaaa bbbb", "cccc dddd"]),
        ("a" * 30, 4, ["a" * 14, "a" * 14, "aa"]),
        ("short", 4, ["short"]),
    ],
)
def test_a_text_is_cut_at_the_best_seam_there_is(text: str, limit: int, cut: Sequence[str]) -> None:
    assert parts(text, limit) == cut


@given(st.text(alphabet=st.sampled_from('ab .\n\n字。"\\\x01é👍'), max_size=600), st.integers(4, 60))
def test_no_part_is_too_large_or_blank_and_no_character_is_lost(text: str, limit: int) -> None:
    cut = parts(text, limit)
    assert all(part == part.strip() != "" and estimated_tokens(part) <= limit for part in cut)
    assert "".join("".join(cut).split()) == "".join(text.split())


def test_the_longest_message_of_any_characters_stays_far_below_what_blocks_a_scope() -> None:
    for character in ("字", "\x01", "a", "👍", "\\"):
        cut = parts(character * 200_000)
        assert max(len(part) for part in cut) <= (16_000 if character == "a" else 4_000 if ord(character) > 127 else 8_000)
        assert "".join(cut) == character * 200_000
