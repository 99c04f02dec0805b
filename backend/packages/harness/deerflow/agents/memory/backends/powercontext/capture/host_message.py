"""One message of the host's: whose it is, which tools it calls, and the text in it that a person or the model wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

# Names and marks of what the host writes in the user's or the model's role.
_HOST_NAME = re.compile(r"(?:^|_)(?:summary|reminder|warning|hint|recovery|memory)$")
_HOST_FLAGS: Final = ("dynamic_context_reminder", "deerflow_error_fallback", "view_image_context")
_USER_SUFFIX: Final = "__user"
_MEMORY_SUFFIX: Final = "__memory"

# Blocks that the host, or an older one, puts into the user's message, and reasoning that a model puts into its answer.
_BLOCKS: Final = ("uploaded_files", "current_uploads", "system-reminder", "memory", "current_date")
_REASONING: Final = "think|thinking|thought|reasoning"
_MARKERS = re.compile(r"^[ \t]*(?:--- (?:BEGIN|END) USER INPUT ---|\[(?:BEGIN|END) USER INPUT\])[ \t]*$", re.MULTILINE)
_ANSWER_TO_A_QUESTION: Final = "my answer is: "
_UNWANTED = re.compile("[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f]")


def details_of(message: Any) -> Mapping[Any, Any]:
    """Return the ``additional_kwargs`` of ``message``."""
    details = getattr(message, "additional_kwargs", None)
    return details if isinstance(details, Mapping) else {}


def identity_of(message: Any) -> str:
    """Return the id that ``message`` came with, or ``""``.

    Where the host puts a reminder before a message, it gives it a new id.
    """
    name = getattr(message, "id", None)
    if not isinstance(name, str):
        return ""
    while name.endswith(_USER_SUFFIX) and name != _USER_SUFFIX:
        name = name.removesuffix(_USER_SUFFIX)
    return name


def is_from_host(message: Any) -> bool:
    """Tell whether the host wrote ``message``, whatever its role: recalled memory, a reminder, a warning, a summary."""
    details, name = details_of(message), getattr(message, "name", None)
    marked = any(details.get(flag) for flag in _HOST_FLAGS) or identity_of(message).endswith(_MEMORY_SUFFIX)
    return marked or (isinstance(name, str) and _HOST_NAME.search(name) is not None)


def is_reply_to_a_question(details: Any) -> bool:
    """Tell by a hidden message's ``additional_kwargs`` whether it is the user's reply to a question of the model's."""
    reply = details.get("human_input_response") if isinstance(details, Mapping) else None
    if not isinstance(reply, Mapping) or reply.get("version") != 1 or reply.get("kind") != "human_input_response":
        return False
    needed = ("source", "request_id", "value") + (("option_id",) if reply.get("response_kind") == "option" else ())
    if reply.get("response_kind") not in ("text", "option"):
        return False
    return all(isinstance(reply.get(name), str) and reply[name].strip() for name in needed)


def called_tools(message: Any) -> list[str]:
    """Return the names of all tools that ``message`` calls or tried to call; an unnamed call is ``?``."""
    details = details_of(message)
    calls = [
        *(getattr(message, "tool_calls", None) or ()),
        *(getattr(message, "invalid_tool_calls", None) or ()),
        *(details.get("tool_calls") or ()),
    ]
    if details.get("function_call"):
        calls.append(details["function_call"])
    return [_name_of_call(call) for call in calls]


def _name_of_call(call: Any) -> str:
    if not isinstance(call, Mapping):
        return "?"
    function = call.get("function")
    return str((function if isinstance(function, Mapping) else call).get("name") or "?")


def text_of(message: Any) -> str:
    """Return the text in the content of ``message``.

    Of a list, that is its strings and blocks of type ``text``, and nothing of other blocks.
    """
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return content
    texts = map(_text_of_block, content if isinstance(content, list | tuple) else [])
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _text_of_block(block: Any) -> Any:
    return block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else block


def typed_text(message: Any) -> str:
    """Return what the user typed.

    ``original_user_content`` only says which part of the content that is: the host may have redacted the content since.
    """
    content, original = text_of(message), details_of(message).get("original_user_content")
    return _clean(_without_blocks(original if isinstance(original, str) and original in content else content))


def replied_text(message: Any) -> str:
    """Return the user's part of a reply to a question: the content quotes the question, which is a tool call's."""
    content, reply = text_of(message), details_of(message).get("human_input_response")
    value = reply.get("value") if isinstance(reply, Mapping) else None
    found = isinstance(value, str) and value in content
    return _clean(_without_blocks(str(value) if found else content.rpartition(_ANSWER_TO_A_QUESTION)[2]))


def answered_text(message: Any) -> str:
    """Return the model's answer without its reasoning, also where its template hides the opening tag."""
    text = text_of(message)
    closings = list(re.finditer(rf"</(?:{_REASONING})\s*>", text, re.IGNORECASE))
    text = text[closings[-1].end() :] if closings else text
    opening = re.search(rf"<(?:{_REASONING})(?:\s[^>]*)?>", text, re.IGNORECASE)
    return _clean(_without_blocks(text[: opening.start()] if opening else text))


def recalled_lines(message: Any) -> set[str]:
    """Return the lines of recalled memory that are long enough to be recognized where an answer repeats them."""
    return {line for line in (line.strip(" \t-*>#") for line in text_of(message).splitlines()) if len(line) >= 24}


def _clean(text: str) -> str:
    """Return ``text`` without outer white space, and without control and half characters.

    Not every store keeps those.
    """
    return _UNWANTED.sub(
        lambda sign: "\ufffd" if sign[0] >= "\ud800" else "\n" if sign[0] == "\r" else "",
        text.replace("\r\n", "\n"),
    ).strip()


def _without_blocks(text: str) -> str:
    """Return ``text`` without the host's blocks; nothing if one is not closed.

    A block goes from its first opening to its last closing.
    """
    for tag in _BLOCKS if "<" in text else ():
        opening = re.search(rf"<{tag}(?:\s[^>]*)?>", text, re.IGNORECASE)
        if opening is None:
            continue
        closings = list(re.finditer(rf"</{tag}\s*>", text, re.IGNORECASE))
        if not closings or closings[-1].start() < opening.end():
            return ""
        text = text[: opening.start()] + text[closings[-1].end() :]
    return _MARKERS.sub("", text) if "USER INPUT" in text else text
