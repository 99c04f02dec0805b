"""What the model is told of an outcome: the result's JSON, or one plain sentence why something was not done."""

from __future__ import annotations

import json
from typing import Any, Final

from ..api.models import ArtifactReference, Citation
from ..errors import PowerContextStatusError
from .changing import AlreadySo, Changed, NotChanged
from .changing import Unknown as UnknownChange
from .outcomes import KINDS, MAX_TEXT_BYTES, AlreadySaved, NotSaved, Saved, Unknown, normalize

_LOOK_UP: Final = "look it up with recall and use the citation that shows"

_SENTENCES: Final = {
    "empty": "there is no text.",
    "not_a_string": "the text must be one string.",
    "not_unicode": "the text has half a character in it (a lone surrogate); write it again.",
    "unknown_kind": f"the kind must be one of {', '.join(KINDS)}.",
    "token": "the memory server refuses the access token; the operator has to check it.",
    "scope": "the memory server does not have the configured Scope; the operator has to check it.",
    "busy": "the memory server is so slow that too many calls wait for it; it can be tried again later.",
    "shutdown": "DeerFlow is shutting down; it can be tried again when it is back.",
    "unreachable": "the memory server cannot be reached; it can be tried again later.",
    "overloaded": "the memory server is overloaded; it can be tried again in a moment.",
    "refused": "the memory server does not accept it; the operator finds the reason in the log.",
    "not_a_citation": 'this is no citation; give the citation that recall shows for the memory, unchanged, such as {"family": "atomic-memory", "artifact_id": "art_…", "revision": 1}.',
    "several_citations": "this cites more than one memory; one call for each.",
    "another_family": f"this cites something that is no memory; {_LOOK_UP}.",
    "another_scope": "this memory is in another Scope, and can only be changed there.",
    "no_such_memory": f"there is no such memory; {_LOOK_UP}.",
    "changed_meanwhile": "the memory was changed meanwhile. Tell the user what it says now, and go on with its present citation only if the user wants that.",
    "is_forgotten": "this memory is forgotten. To have it again, save it with remember.",
    "is_set_aside": "the memory server merged this memory into another one, or retired it; look up with recall what there is instead.",
    "not_yours": "the memory server does not let this token change this memory: it was written by somebody else, or before the server asked for tokens. The operator can change it in PowerContext.",
    "contended": "others are changing the user's memories at this moment; it can be tried again.",
    "no_query": "there is nothing to search for; give a few words.",
    "failed": "the memory server did not answer as it should; it can be tried again, and the operator finds the reason in the log.",
}


UNKNOWN: Final = "It is not known whether this was saved. Tell the user so, and do not try again: it may have been stored."
UNKNOWN_FOR_NOW: Final = (
    "It is not known whether this was saved: the memory server, or something before it, is too busy. Tell the user so, and do not try again now. The user can ask for it again in a few minutes; it is looked for before it is stored."
)


def why_not_saved(outcome: NotSaved, text: object) -> str:
    """Return why nothing is saved."""
    return f"Not saved: {_sentence(outcome.reason, text)}"


def why_not_changed(tool: str, outcome: NotChanged, text: object = None) -> str:
    """Return why ``correct`` or ``forget`` changed nothing, with what the memory says now where that is the reason."""
    sentence = f"{'Not corrected' if tool == 'correct' else 'Not forgotten'}: {_sentence(outcome.reason, text)}"
    if outcome.reason == "changed_meanwhile" and outcome.text is not None and outcome.citation is not None:
        now = {"text": outcome.text, "citation": _json(outcome.citation)}
        return f"{sentence} Now: {json.dumps(now, ensure_ascii=False)}"
    return sentence


def why_not_looked_up(reason: str) -> str:
    """Return why ``recall`` has no answer, which is not the same as finding nothing."""
    return f"Not looked up, so it is not known what is remembered: {_SENTENCES[reason]}"


def saved(outcome: Saved | AlreadySaved | Unknown) -> dict[str, Any]:
    """Return the result of ``remember``."""
    if isinstance(outcome, Unknown):
        busy = isinstance(outcome.error, PowerContextStatusError) and outcome.error.status_code in (429, 503)
        return {"outcome": "unknown", "citation": None, "message": UNKNOWN_FOR_NOW if busy else UNKNOWN}
    citation = None if outcome.citation is None else _json(outcome.citation)
    if isinstance(outcome, Saved):
        how = " (its confirmation was lost, so it was looked up)" if outcome.by_read_back else ""
        return {"outcome": "saved", "citation": citation, "message": f"Saved{how}."}
    revision = f" (Memory revision {outcome.memory_revision.revision})" if outcome.memory_revision else ""
    return {
        "outcome": "already_saved",
        "citation": citation,
        "message": f"This was saved before; nothing was added{revision}.",
    }


def corrected(outcome: Changed | AlreadySo | UnknownChange) -> dict[str, Any]:
    """Return the result of ``correct``."""
    if isinstance(outcome, UnknownChange):
        message = "It is not known whether this was corrected. Tell the user so, and do not try again now: it may have been."
        return {"outcome": "unknown", "citation": _json(outcome.citation), "message": message}
    if isinstance(outcome, AlreadySo):
        return {
            "outcome": "already_so",
            "citation": _json(outcome.citation),
            "message": "The memory said exactly this before; nothing was changed.",
        }
    return {"outcome": "corrected", "citation": _json(outcome.citation), "message": f"Corrected{_how(outcome)}."}


def forgotten(outcome: Changed | AlreadySo | UnknownChange) -> dict[str, Any]:
    """Return the result of ``forget``."""
    if isinstance(outcome, UnknownChange):
        name, message = (
            "unknown",
            "It is not known whether this was forgotten. Tell the user so, and do not try again now: it may have been.",
        )
    elif isinstance(outcome, AlreadySo):
        name, message = "already_forgotten", "This was forgotten before; nothing was changed."
    else:
        # Servers before 1.3 have no way to bring an entry back.
        way_back = "The operator can restore it in PowerContext." if isinstance(outcome.citation, ArtifactReference) else "It can be saved again with `remember`."
        name, message = "forgotten", f"Forgotten{_how(outcome)}; it is no longer recalled. {way_back}"
    return {"outcome": name, "text": outcome.text, "citation": _json(outcome.citation), "message": message}


def _sentence(reason: str, text: object) -> str:
    if reason == "too_long" and isinstance(text, str):
        return f"the text has {len(normalize(text).encode())} bytes, and at most {MAX_TEXT_BYTES} can be saved; shorten it."
    return _SENTENCES[reason]


def _how(outcome: Changed) -> str:
    return " (the confirmation was lost, so it was looked up)" if outcome.by_read_back else ""


def _json(citation: Citation) -> dict[str, Any]:
    return citation.model_dump(mode="json")
