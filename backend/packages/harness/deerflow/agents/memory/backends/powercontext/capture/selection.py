"""What of a conversation may leave: from the host's messages to turns with what their owner wrote and the final answer.

Everything else stays: system text, hidden messages, recalled memory, reminders, reasoning, tool calls and results,
upload blocks. Pure: no time, no file, no environment; messages are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from .credentials import has_credential
from .host_message import (
    answered_text,
    called_tools,
    details_of,
    identity_of,
    is_from_host,
    is_reply_to_a_question,
    recalled_lines,
    replied_text,
    typed_text,
)

MAX_CHARACTERS: Final = 200_000
"""The longest message that is captured: PowerContext takes no longer source (1.4.1 and 1.2.0), and nobody types one."""

MAX_TURNS: Final = 10
"""How many turns are looked at, from the end.

A conversation is handed over whole every time, and looking takes the host's processor.
"""

Role = Literal["user", "assistant"]
Reason = Literal["blank", "credential", "explicit", "mode", "recalled", "too_long", "trivial"]
KeepHidden = Callable[[Any], bool]

# Tools by the last word of their name: a plugin's tool ends in twelve hex digits, and `memory_…` are those of the
# host's `mode: tool`.
_SAVING = re.compile(r"(?:^|[_.:-])(?:remember|correct|forget|memory_(?:add|update|delete))(?:_[0-9a-f]{12})?$")
_RECALLING = re.compile(r"(?:^|[_.:-])(?:recall|memory_(?:search|get))(?:_[0-9a-f]{12})?$")
_ASKING: Final = "ask_clarification"

_TRIVIAL: Final = frozenset(
    """ok okay okey k kk yes yep yeah yup no nope sure thanks thx ty great cool nice perfect good fine right correct exactly done go next continue stop
    hi hello hey bye please thank_you thank_you_very_much thanks_a_lot many_thanks got_it i_see sounds_good go_on go_ahead keep_going please_continue
    yes_please no_thanks all_good well_done good_job good_morning danke ja nein gut weiter merci oui non gracias sí si vale obrigado спасибо да нет
    好 好的 好吧 好呀 好滴 嗯 嗯嗯 哦 噢 行 可以 是 是的 对 对的 不 不是 不用 不用了 没有 没问题 谢谢 谢谢你 谢谢您 多谢 感谢 收到 明白 明白了 了解 知道了
    懂了 继续 请继续 下一步 你好 您好 再见 はい いいえ ありがとう 네 아니요 감사합니다""".split(),
)
_LONGEST_TRIVIAL: Final = 40


@dataclass(frozen=True)
class Said:
    """One message of a turn, also if it is left out: what was looked at once is not new again.

    Attributes:
        message_id: The host's id of it, the same whether or not the host gave it a new one; ``""`` if it has none.
        text: What may leave. Of what is left out it only serves to recognize it; empty where it may hold a secret.
        left_out: Why it stays, or ``None``.
    """

    message_id: str
    role: Role
    text: str = field(repr=False)
    left_out: Reason | None = None


@dataclass(frozen=True)
class Turn:
    """What the user wrote, replies to the model's questions included, and the final answer.

    Attributes:
        answered: Whether the answer is there. A turn without one was interrupted, or is under way.
        explicit: Whether the model saved, corrected or forgot something in it: that is stored already.
    """

    said: tuple[Said, ...]
    answered: bool
    explicit: bool

    @property
    def has_credential(self) -> bool:
        """Whether something of it was left out because it has a credential in it."""
        return any(said.left_out == "credential" for said in self.said)


@dataclass
class _Draft:
    """A turn while its messages are sorted; of those the user wrote, whether they are hidden replies."""

    typed: list[tuple[Any, bool]] = field(default_factory=list)
    answer: Any = None
    explicit: bool = False
    recalls: bool = False
    asks: bool = False


def read_turns(messages: Iterable[Any], *, answers: bool, keep_hidden: KeepHidden | None = None) -> list[Turn]:
    """Return the last ``MAX_TURNS`` turns, in order; of a turn that began before the first message, what is left of it.

    Args:
        messages: The host's: ``type``, ``content``, ``id``, ``name``, ``additional_kwargs`` and ``tool_calls`` are
            read.
        answers: Whether final answers may leave too.
        keep_hidden: The host's hook; by the ``additional_kwargs`` of a hidden message it tells whether that is the
            user's reply to a question.
    """
    drafts: list[_Draft] = []
    recalled: set[str] = set()
    for message in messages:
        kind = getattr(message, "type", None)
        if kind not in ("human", "ai"):
            continue
        if is_from_host(message):
            recalled |= recalled_lines(message)
        elif kind == "human":
            _sort_human(message, drafts, keep_hidden or is_reply_to_a_question)
        else:
            _sort_answer(message, drafts)
    return [_finish(draft, answers, recalled) for draft in drafts[-MAX_TURNS:]]


def _sort_human(message: Any, drafts: list[_Draft], keep_hidden: KeepHidden) -> None:
    details = details_of(message)
    hidden = bool(details.get("hide_from_ui"))
    if hidden and not _is_kept(keep_hidden, details):
        return
    if not drafts or not drafts[-1].asks:  # a reply to a question goes on with its turn
        drafts.append(_Draft())
    drafts[-1].asks = False
    drafts[-1].typed.append((message, hidden))


def _is_kept(keep_hidden: KeepHidden, details: Mapping[Any, Any]) -> bool:
    try:
        return keep_hidden(details) is True
    except Exception:  # noqa: BLE001 - the host's hook; what it cannot judge stays
        return False


def _sort_answer(message: Any, drafts: list[_Draft]) -> None:
    if not drafts:
        drafts.append(_Draft())
    draft, tools = drafts[-1], called_tools(message)
    draft.answer, draft.asks = None, _ASKING in tools  # only what the model said last is its final answer
    draft.explicit = draft.explicit or any(_SAVING.search(tool) for tool in tools)
    draft.recalls = draft.recalls or any(_RECALLING.search(tool) for tool in tools)
    if not tools and not details_of(message).get("hide_from_ui"):
        draft.answer = message


def _finish(draft: _Draft, answers: bool, recalled: set[str]) -> Turn:
    said = []
    for message, hidden in draft.typed:
        text = replied_text(message) if hidden else typed_text(message)
        said.append(Said(identity_of(message), "user", text, _why_left_out(text, draft.explicit)))
    if any(message.left_out == "credential" for message in said):  # the rest of the turn may speak of it
        said = [Said(message.message_id, "user", "", "credential") for message in said]
    if draft.answer is not None:
        said.append(_finish_answer(draft, said, answers, recalled))
    return Turn(tuple(said), answered=draft.answer is not None, explicit=draft.explicit)


def _finish_answer(draft: _Draft, typed: list[Said], answers: bool, recalled: set[str]) -> Said:
    """Return the final answer.

    It stays if nothing that it answers may leave, or if it is made of what was remembered before.
    """
    name, text = identity_of(draft.answer), answered_text(draft.answer)
    if not answers:
        return Said(name, "assistant", text, "mode")
    reason = _why_left_out(text)
    if reason != "credential" and all(message.left_out for message in typed):
        reason = typed[0].left_out if typed else "blank"
    if reason is None and (draft.recalls or any(line in text for line in recalled)):
        reason = "recalled"
    return Said(name, "assistant", "" if reason == "credential" else text, reason)


def _why_left_out(text: str, explicit: bool = False) -> Reason | None:
    if not text:
        return "blank"
    if len(text) > MAX_CHARACTERS:
        return "too_long"
    if has_credential(text):
        return "credential"
    if explicit:
        return "explicit"
    return "trivial" if len(text) <= _LONGEST_TRIVIAL and _is_trivial(text) else None


def _is_trivial(text: str) -> bool:
    """Tell whether ``text`` is nothing but acknowledgements and greetings, or has no letter or digit at all."""
    words = re.findall(r"\w+", text.lower())
    return "_".join(words) in _TRIVIAL or all(word in _TRIVIAL for word in words)
