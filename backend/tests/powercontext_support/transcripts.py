"""Conversations as the host hands them over: messages of every kind, and generated transcripts full of what must not leave."""

from __future__ import annotations

import random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

MARK = "MUSTSTAY"
"""Stands in everything that must not leave."""


def user(text: Any, name: str, **details: Any) -> HumanMessage:
    """Return what a user typed, with the host's id ``name``."""
    return HumanMessage(content=text, id=name, additional_kwargs=details)


def answer(text: Any, name: str, **details: Any) -> AIMessage:
    """Return a final answer."""
    return AIMessage(content=text, id=f"lc_run--{name}", additional_kwargs=details)


def call(tool: str, name: str, text: str = "", **arguments: Any) -> list[BaseMessage]:
    """Return the model's call of ``tool`` and its result."""
    calls = [{"name": tool, "args": arguments, "id": f"call-{name}"}]
    return [AIMessage(content=text, id=f"lc_run--{name}", tool_calls=calls), ToolMessage(content=f"result {MARK}", tool_call_id=f"call-{name}", id=f"tool-{name}")]


def first_turn(text: str, name: str, memory: str = "") -> list[BaseMessage]:
    """Return a first message as the host stores it: the reminder takes its id, then memory, then the text under a new id."""
    flags = {"hide_from_ui": True, "dynamic_context_reminder": True}
    reminder = SystemMessage(content=f"<system-reminder>{MARK}</system-reminder>", id=name, additional_kwargs=flags)
    recalled = [HumanMessage(content=memory, id=f"{name}__memory", additional_kwargs=flags)] if memory else []
    return [reminder, *recalled, user(text, f"{name}__user")]


def uploaded(text: str, name: str) -> HumanMessage:
    """Return a message with an upload, whose block the host puts before the text."""
    block = f"<current_uploads>\n- {MARK}.pdf\n  > preview {MARK}\n</current_uploads>"
    return user(f"{block}\n\n{text}", name, original_user_content=text, files=[{"filename": f"{MARK}.pdf"}])


def reply_to_a_question(value: str, name: str) -> HumanMessage:
    """Return the hidden message that the host's page makes of a reply to the model's question."""
    reply = {"version": 1, "kind": "human_input_response", "source": "ask_clarification", "request_id": "r1", "response_kind": "text", "value": value}
    return user(f'For your clarification "{MARK}?", my answer is: {value}', name, hide_from_ui=True, human_input_response=reply)


SECRETS = (
    f"my password is hunter2{MARK}",
    f"postgres://app:{MARK}9@db.internal/orders",
    f"API_KEY={MARK}1234",
    "AKIA" + "IOSFODNN7EXAMPLE" + f" {MARK}",
    "ghp_" + "a1B2" * 9 + f" {MARK}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{MARK}\n-----END RSA PRIVATE KEY-----",
    f"密码是 {MARK}88",
    "Authorization: Bearer " + "abc123" * 6 + MARK,
)


def generated(seed: int) -> tuple[list[BaseMessage], list[str], list[str]]:
    """Return a transcript, what its user wrote that may leave, and the final answers that may, in order."""
    choice = random.Random(seed)
    messages: list[BaseMessage] = [SystemMessage(content=f"You are an agent. {MARK}", id=f"s{seed}")]
    wrote: list[str] = []
    answered: list[str] = []
    for number in range(choice.randint(1, 8)):
        name, text = f"m{seed}-{number}", f"In project p{seed} the step{number} of route{choice.randrange(9999)} runs at noon."
        kept = _add_turn(choice, messages, name, text, first=number == 0)
        if kept is None:
            messages.append(answer(f"I cannot help with {MARK}.", name))
            continue
        wrote += kept
        if choice.random() < 0.2:  # interrupted
            continue
        said = f"Answer{seed}-{number}: the route is planned."
        reasoning = [{"type": "thinking", "thinking": MARK}, {"type": "text", "text": said}]
        messages.append(answer(choice.choice([said, reasoning, f"<think>{MARK}</think>\n{said}", f"{MARK}</think>{said}"]), name, reasoning_content=MARK))
        answered.append(said)
    return messages, wrote, answered


def _add_turn(choice: random.Random, messages: list[BaseMessage], name: str, text: str, *, first: bool) -> list[str] | None:
    """Add what comes before an answer; return what of it may leave, or ``None`` for a turn that stays whole."""
    if first and choice.random() < 0.8:
        messages += first_turn(text, name, memory=f"- {MARK}: a memory long enough to be recognized")
        return [text]
    kind = choice.randrange(9)
    if kind == 0:
        messages.append(user(f"{text} {choice.choice(SECRETS)}", name))
        return None
    if kind == 1:
        messages += [user(f"Remember {text} {MARK}", name), *call("ext_powercontext_remember_0123456789ab", name, text=MARK)]
        return None
    if kind == 2:
        messages.append(uploaded("", name))
        return None
    if kind == 3:
        messages.append(uploaded(text, name))
    elif kind == 4:
        messages += [user(text, name), *call("ask_clarification", name, question=MARK), reply_to_a_question(f"{text} Sure.", f"{name}r")]
        return [text, f"{text} Sure."]
    elif kind == 5:
        messages += [user(text, name), user(f"todo {MARK}", f"{name}t", hide_from_ui=True), *call("web_search", name, f"let me look {MARK}", q=MARK)]
    elif kind == 6:
        messages += [user(f"<system-reminder>\n<memory>{MARK}</memory>\n</system-reminder>\n\n{text}", name), HumanMessage(content=MARK, name="loop_warning", id=f"{name}w")]
    elif kind == 7:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{MARK}"}}
        messages.append(user([{"type": "text", "text": text}, image], name, original_user_content=f"{text} {MARK}"))  # redacted by the host
    else:
        messages += [user(text, name), AIMessage(content=MARK, id=f"{name}x", additional_kwargs={"function_call": {"name": "f", "arguments": MARK}})]
    return [text]
