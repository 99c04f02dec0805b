"""What of a conversation may leave the host, and what may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from powercontext_support.transcripts import MARK, answer, call, first_turn, generated, reply_to_a_question, uploaded, user

from deerflow.agents.memory.backends.powercontext.capture.selection import read_turns


def leaving(messages: Sequence[BaseMessage], *, answers: bool = True, **hooks: Any) -> list[str]:
    """Return the texts that may leave, in order."""
    return [said.text for turn in read_turns(messages, answers=answers, **hooks) for said in turn.said if said.left_out is None]


def reasons(messages: Sequence[BaseMessage]) -> list[str | None]:
    return [said.left_out for turn in read_turns(messages, answers=True) for said in turn.said]


TEXT = "Deploy the billing service on Fridays only."


def test_what_the_user_wrote_and_the_final_answer_may_leave() -> None:
    messages = [*first_turn(TEXT, "a"), *call("bash", "b", "let me look"), answer("It is done, on Friday.", "c")]
    assert leaving(messages) == [TEXT, "It is done, on Friday."]


def test_without_answers_only_what_the_user_wrote_leaves() -> None:
    assert leaving([user(TEXT, "a"), answer("It is done.", "b")], answers=False) == [TEXT]


@pytest.mark.parametrize(
    "message",
    [
        user(TEXT, "a", hide_from_ui=True),
        user(TEXT, "a__memory"),
        user(TEXT, "a", dynamic_context_reminder=True),
        HumanMessage(content=TEXT, id="a", name="summary"),
        HumanMessage(content=TEXT, id="a", name="todo_completion_reminder"),
        HumanMessage(content=TEXT, id="a", name="budget_warning"),
        answer(TEXT, "a", hide_from_ui=True),
        answer(TEXT, "a", deerflow_error_fallback=True),
        AIMessage(content=TEXT, id="a", tool_calls=[{"name": "bash", "args": {}, "id": "c"}]),
        AIMessage(content=TEXT, id="a", invalid_tool_calls=[{"name": "bash", "args": "{", "id": "c", "error": "e", "type": "invalid_tool_call"}]),
        AIMessage(content=TEXT, id="a", additional_kwargs={"tool_calls": [{"function": {"name": "bash"}}]}),
    ],
)
def test_what_the_host_wrote_or_a_tool_got_stays(message: BaseMessage) -> None:
    asked = "Which day is the release, and who approves it?"
    assert leaving([user(asked, "q"), message]) == [asked]


def test_a_reply_to_a_question_is_the_users_and_the_question_is_not() -> None:
    messages = [user(TEXT, "a"), *call("ask_clarification", "b", question=MARK), reply_to_a_question("On the staging cluster.", "c"), answer("Done, there.", "d")]
    assert leaving(messages) == [TEXT, "On the staging cluster.", "Done, there."]
    assert len(read_turns(messages, answers=True)) == 1


def test_the_hosts_hook_decides_about_hidden_messages() -> None:
    messages = [user(TEXT, "a"), reply_to_a_question("On the staging cluster.", "c")]
    assert leaving(messages, keep_hidden=lambda details: False) == [TEXT]
    assert leaving(messages, keep_hidden=lambda details: details["no such key"]) == [TEXT]


def test_a_plain_reply_to_a_question_belongs_to_the_turn_of_the_question() -> None:
    [turn] = read_turns([user(TEXT, "a"), *call("ask_clarification", "b"), user("On the staging cluster.", "c"), answer("Done.", "d")], answers=True)
    assert [said.message_id for said in turn.said] == ["a", "c", "lc_run--d"]


def test_an_upload_block_stays_and_the_text_beside_it_leaves() -> None:
    assert leaving([uploaded(TEXT, "a"), answer("I read the file now.", "b")]) == [TEXT, "I read the file now."]


def test_the_answer_to_an_upload_without_a_word_stays() -> None:
    assert leaving([uploaded("", "a"), answer("The file says a lot.", "b")]) == []


def test_what_the_host_redacted_stays_redacted() -> None:
    redacted = "<current_uploads>x</current_uploads>\n\nCall [REDACTED] about the billing service."
    assert leaving([user(redacted, "a", original_user_content="Call Zoe Smith about the billing service.")]) == ["Call [REDACTED] about the billing service."]


@pytest.mark.parametrize(
    ("content", "left"),
    [
        (f"<system-reminder>x</system-reminder>{TEXT}", TEXT),
        (f"<MEMORY>a</memory> b </MEMORY>\n{TEXT}", TEXT),
        (f"{TEXT} <memory> is not closed", None),
        (f"</memory>{TEXT}<memory>", None),
        (f"--- BEGIN USER INPUT ---\n{TEXT}\n--- END USER INPUT ---", TEXT),
        ([{"type": "text", "text": TEXT}, {"type": "reasoning", "text": "x"}, {"type": "file", "text": "y"}], TEXT),
        (f"\r\n{TEXT}\x00\x07\r\n", TEXT),
        (f"{TEXT} \ud83d", f"{TEXT} \ufffd"),
        (None, None),
        (7, None),
    ],
)
def test_of_a_message_only_the_typed_text_leaves(content: Any, left: str | None) -> None:
    message = HumanMessage(content="", id="a").model_copy(update={"content": content})
    assert leaving([message]) == ([] if left is None else [left])


@pytest.mark.parametrize("content", ["<think>secret plan</think>It is done.", "secret plan</think>It is done.", "It is done.<thinking>and more", [{"type": "thinking", "thinking": "x"}, "It is done."]])
def test_reasoning_is_cut_out_of_answers(content: Any) -> None:
    assert leaving([user(TEXT, "a"), answer(content, "b")]) == [TEXT, "It is done."]


@pytest.mark.parametrize("tool", ["remember", "correct", "forget", "ext_powercontext_remember_0a1b2c3d4e5f", "memory_add"])
def test_a_turn_that_saved_explicitly_stays_whole(tool: str) -> None:
    messages = [user(TEXT, "a"), *call(tool, "b"), answer("I have saved that.", "c")]
    assert reasons(messages) == ["explicit", "explicit"]


@pytest.mark.parametrize("tool", ["ext_powercontext_recall_0a1b2c3d4e5f", "memory_search"])
def test_an_answer_made_of_recalled_memory_stays(tool: str) -> None:
    assert reasons([user(TEXT, "a"), *call(tool, "b"), answer("You said so in May.", "c")]) == [None, "recalled"]


def test_an_answer_that_repeats_the_memory_it_was_given_stays() -> None:
    memory = "## Memory\n- The billing service is frozen in December."
    messages = [*first_turn(TEXT, "a", memory), answer("Mind that: The billing service is frozen in December.", "b"), user("And the order service, when may that go out?", "c"), answer("Any day.", "d")]
    assert reasons(messages) == [None, "recalled", None, None]


def test_a_message_with_a_credential_takes_its_whole_turn_with_it() -> None:
    messages = [user("The login of the shop: password = hunter22", "a"), answer("I noted hunter22 for the shop.", "b"), user(TEXT, "c")]
    assert reasons(messages) == ["credential", "credential", None]
    assert [said.text for turn in read_turns(messages, answers=True) for said in turn.said] == ["", "", TEXT]


@pytest.mark.parametrize("text", ["ok", "Thank you!", "好的！", "👍", "Yes, please.", "谢谢", "...", "OK, continue"])
def test_acknowledgements_stay_with_their_answers(text: str) -> None:
    assert reasons([user(text, "a"), answer("You are welcome, as always.", "b")]) == ["trivial", "trivial"]


@pytest.mark.parametrize("text", ["ok, but use pytest", "Yes, on Fridays", "no sugar", "好的，用中文回答"])
def test_what_only_begins_like_an_acknowledgement_leaves(text: str) -> None:
    assert leaving([user(text, "a")]) == [text]


def test_a_message_longer_than_a_source_can_be_stays() -> None:
    assert reasons([user("字" * 200_001, "a"), user("字" * 200_000, "b")]) == ["too_long", None]


def test_an_answer_that_a_tool_call_follows_is_not_the_final_one() -> None:
    [turn] = read_turns([user(TEXT, "a"), answer("Wait, let me look again.", "b"), *call("bash", "c")], answers=True)
    assert ([said.text for said in turn.said], turn.answered) == ([TEXT], False)


def test_the_id_that_the_host_swaps_names_the_same_message() -> None:
    assert {turn.said[0].message_id for name in ("a", "a__user", "a__user__user") for turn in read_turns([user(TEXT, name)], answers=False)} == {"a"}


def test_messages_of_no_known_shape_are_passed_over() -> None:
    assert read_turns([None, object(), "text", {"type": "human"}], answers=True) == []


@pytest.mark.parametrize("seed", range(200))
def test_nothing_marked_in_a_generated_transcript_leaves(seed: int) -> None:
    messages, wrote, answered = generated(seed)
    assert leaving(messages, answers=False) == wrote
    left = leaving(messages)
    assert sorted(left) == sorted(wrote + answered)
    assert MARK not in "".join(left)
