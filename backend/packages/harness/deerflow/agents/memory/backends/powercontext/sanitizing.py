"""Tags of the host's own blocks, made harmless in what comes from memory.

DeerFlow puts the recalled text between ``<memory>`` and ``</memory>``, and that between ``<system-reminder>`` and its
end, as it is. A memory that says ``</memory>`` would leave the block, and what follows it would read as DeerFlow's own
words. DeerFlow writes such tags as ``&lt;…&gt;`` in the memories of its own backend; here they get square brackets,
which read the same and take no more bytes, so that the text stays within its budget. Nothing else changes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

# What shows nothing, and may stand between the characters of a tag.
_UNSEEN: Final = "\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"


def _spelled(name: str) -> str:
    """Return a pattern for ``name`` in ordinary or full-width letters.

    DeerFlow writes the second block with ``-`` and with ``_``.
    """
    letters = {letter: f"[{letter}{chr(ord(letter) + 0xFEE0)}]" for letter in name}
    letters["-"] = "[-_\u2010\u2011\uff0d\uff3f]"
    return f"[{_UNSEEN}]*".join(letters[letter] for letter in name)


@cache
def _tag() -> re.Pattern[str]:
    """Return the pattern of a tag, made at first need: DeerFlow imports this folder at start-up, chosen or not.

    A name goes on with a letter, "-", ":", or "." and a letter: <memory-size> is another tag. What stands behind the
    name, up to a ">" in the same line, is the tag's.
    """
    name = rf"[\s/\\\uff0f{_UNSEEN}]*(?:{_spelled('memory')}|{_spelled('system-reminder')})[{_UNSEEN}]*(?![\w:-]|\.\w)"
    rest = r"[^<>\uff1c\uff1e\ufe64\ufe65\n]{0,200}"
    return re.compile(rf"[<\uff1c\ufe64](?P<name>{name})(?:(?P<rest>{rest})[>\uff1e\ufe65])?", re.IGNORECASE)


def without_host_tags(text: str) -> str:
    """Return ``text`` with square brackets around each tag that would open or close one of the host's blocks.

    It never gets longer, in bytes.
    """
    if "<" not in text and "\uff1c" not in text and "\ufe64" not in text:
        return text
    return _tag().sub(_in_square_brackets, text)


def _in_square_brackets(tag: re.Match[str]) -> str:
    return f"[{tag['name']}" if tag["rest"] is None else f"[{tag['name']}{tag['rest']}]"


def result_without_host_tags(result: Any) -> Any:
    """Return what a tool returns, JSON, with the same done to each string in it."""
    match result:
        case str():
            return without_host_tags(result)
        case dict():
            return {key: result_without_host_tags(value) for key, value in result.items()}
        case list():
            return [result_without_host_tags(value) for value in result]
    return result
