"""What can be an id or a token, and what is a slip of whoever typed it.

The rules are the same for variables and for the bindings file.

A wrong id is the most silent fault there is: everything answers, and its owner gets nothing. So what cannot be right is
refused: quotes that ``docker --env-file`` keeps, a comment behind the value, a variable nobody filled in, a
placeholder, an e-mail address, signs that do not show.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_SCOPE_ID_CHARACTERS: Final = 256
"""The API's limit (1.4.1 and 1.2.0)."""

OWNER_ID_RULE: Final = (
    "must be the id of a signed-in DeerFlow user as DeerFlow's user table has it: nothing around it, such as quotes, spaces or a comment, "
    "no variable that is not filled in, no e-mail address, no sign that does not show; and not `default`, which is what DeerFlow calls a caller it does not know"
)
SCOPE_ID_RULE: Final = "must be the id of a PowerContext Scope, 1 to 256 characters: nothing around it, such as quotes, spaces or a comment, and no variable that is not filled in"
TOKEN_RULE: Final = "must be printable ASCII without white space or quotes (look for a stray space, a line end, a variable that is not filled in)"  # noqa: S105

_DEERFLOW_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_UNFILLED = re.compile(r"\$\w+|\$?\{.*\}|<.*>|[\"'`].*|.*[\"'`]")
_COMMENT = re.compile(r"\s#")
_VARIABLE = re.compile(r"\$\w|\$\(|\{.*\}|<.*>")
_QUOTES = "\"'`“”‘’«»"
# Letters and marks that show nothing; the categories of other invisible signs are enough to know them.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f]")


def is_owner_id(text: str) -> bool:
    """Tell whether ``text`` can be the id of a signed-in DeerFlow user.

    ``default`` is what DeerFlow calls a caller it does not know.
    """
    return _can_be_an_id(text, forbidden="$<>{}@#,;") and text != "default"


def is_scope_id(text: str) -> bool:
    """Tell whether ``text`` can be the id of a PowerContext Scope. The API allows more; no server makes such ids."""
    return _can_be_an_id(text, forbidden="$<>{}") and len(text) <= MAX_SCOPE_ID_CHARACTERS and text not in (".", "..")


def is_token(text: str) -> bool:
    """Tell whether ``text`` can be a bearer token.

    That is printable ASCII, neither in quotes nor a variable that was not filled in.
    """
    return _TOKEN.fullmatch(text) is not None and _UNFILLED.fullmatch(text) is None


def slip_in(text: str) -> str:
    """Return what is wrong with ``text``, which broke its rule, where that is a known slip; else ``""``.

    ``text`` is an id, a token or a URL, and is not quoted.
    """
    if not text or text.isspace():
        return "is empty"
    if text[0] in _QUOTES or text[-1] in _QUOTES:
        return "has quotes around it"
    if _COMMENT.search(text):
        return "has a comment behind it"
    if _VARIABLE.search(text):
        return "has a variable or a placeholder in it that is not filled in"
    if "@" in text and "://" not in text:
        return "looks like an e-mail address"
    if text.startswith("Bearer "):
        return "begins with Bearer, which is not part of it"
    if re.search(r"\s", text):
        return "has a space or a line end in it"
    if not text.isprintable() or _BLANK.search(text):
        return "has a sign in it that does not show"
    return ""


def has_the_shape_of_deerflows_ids(text: str) -> bool:
    """Tell whether ``text`` looks like the ids in DeerFlow's user table (August 2026: a UUID in lower case)."""
    return _DEERFLOW_ID.fullmatch(text) is not None


def _can_be_an_id(text: str, *, forbidden: str) -> bool:
    """Tell whether ``text`` is not empty and has none of the signs that nobody means.

    Those are white space, control, invisible and unassigned signs, quotes, and ``forbidden`` ones.
    """
    if _PLAIN.fullmatch(text):  # nearly all, and ten thousand of them at a start
        return True
    refused = _QUOTES + forbidden
    if text == "" or _BLANK.search(text):
        return False
    return not any(sign in refused or unicodedata.category(sign)[0] in "CZ" for sign in text)
