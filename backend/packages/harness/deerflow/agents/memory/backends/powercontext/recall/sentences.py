"""The sentences of a request.

It tells which of them ask, what of them only says how the work is to be done, and their content words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .forms import language_of
from .languages import JAPANESE_FUNCTION_WORDS, JAPANESE_VERBS, Language
from .prose import CLAUSE_END, HAN_RUN, TOKEN
from .stop_words import CHINESE_CUTS, FUNCTION_WORDS, TASK_VERBS

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[\d_]+(?:st|nd|rd|th|am|pm|min|ms|mm|cm|km|kg|kb|mb|gb|px|pt)?")
_CONSTRAINT = re.compile(
    r"""(?:(?:and|but|please|also)\ )?
    (?:do\ not|don['’]t|never|avoid|no|not|maximum|at\ most|mention|cite|be\ (?:brief|concise|short)|keep\ (?:it|the|them|this)
    |only\ (?:use|return|output|list|show|give|answer|change|edit|write|print|code|the)|(?:use|return|output)\ only
    |(?:answer|reply|respond)\ (?:in|with|only|briefly|concisely)|stop\ (?:after|before)|(?:end|close)\ with)\b
    |(?:请|并且?|也|而且|同时)?(?:不要|不得|不可|不用|不超|不需要|勿|无需|禁止|避免|别[再把用写改加动做给]|只[要需用能给写返输保改做看]|仅[用限输返]
    |(?:全文|字数|篇幅)[不控约在]|控制在|直接给出|语言[要简朴口])
    |(?:keine?n?|nicht|höchstens|maximal|nur|sin|nada\ de|máximo|como\ máximo|solo|sólo|no\ más|pas\ de|ne|sans|uniquement|maximum|seulement
    |não|sem|no\ máximo|apenas|senza|non|al\ massimo|solo|geen|niet|hoogstens|не|без|только|لا|بدون|من\ دون|فقط)\b
    |[^、。]*(?:しない|使わない|不要|以内で?|だけ返して|なしで?)$""",
    re.VERBOSE,
)
# Behind the first clause of a sentence; in the first it may be the request itself: "Show the schedule", "Without VAT,
# how much is it?"
_LATER_CONSTRAINT = re.compile(
    r"(?:(?:and|but|please|also) )?(?:only|just|without|show (?:the|your)|(?:start|begin) (?:with|by))\b",
)
_ASKING = re.compile(
    r"[?؟]|\b(?:please|(?:could|can|would|will) you|help me|i need|i want|i(?:['’]d| would) like|let['’]s)\b",
)
_ASKING_IN_CHINESE = re.compile(
    r"""[？请帮]|吗$|希望[你您]|需要[你您]|我需要|我想|能否|能不能|可否|是否|^.{0,6}(?:如何|怎么|怎样|为什么|为何|什么|哪|多少|几)
    |(?:什么|哪里|哪些|哪个|多少|怎么样|怎么办)$""",
    re.VERBOSE,
)
_LEAD_IN = re.compile(
    r"(?:(?:then|also|and|next|finally|first|second|third|lastly|now|afterwards|so|ok|okay|hi|hello|hey|just|but)\b[\s,:]*){1,3}",
)
_BEFORE_A_VERB = frozenset(
    [
        "please",
        "can",
        "could",
        "would",
        "will",
        "you",
        "help",
        "me",
        "us",
        "i",
        "need",
        "want",
        "to",
        "and",
        "or",
        "then",
        "also",
        "now",
        "just",
    ],
)
_FIRST_WORD = re.compile(r"\W*(\w+)")
_KANA = re.compile("[ぁ-ゟァ-ヺー]")
_HIRAGANA = re.compile("[ぁ-ゟ]+")
_CHINESE_CUT = re.compile(
    "[一二三四五六七八九十百千两几多]+[个位份条篇张封次名家款台项件套种页]|" + "|".join(sorted(CHINESE_CUTS, key=len, reverse=True)),
)


def without_constraints(sentence: str) -> str:
    """Return ``sentence`` without the clauses that only say how the work is to be done."""
    clauses = [clause.strip() for clause in CLAUSE_END.split(sentence)]
    later = [clause for clause in clauses[1:] if not _LATER_CONSTRAINT.match(clause)]
    kept = [clause for clause in clauses[:1] + later if clause and not _CONSTRAINT.match(clause)]
    return sentence if len(kept) == len(clauses) else ", ".join(kept)


def asks(sentence: str, latin: Language | None = None) -> bool:
    """Tell whether ``sentence`` asks for something."""
    if _ASKING.search(sentence) or (not sentence.isascii() and _ASKING_IN_CHINESE.search(sentence.rstrip("。；;. "))):
        return True
    lead_in = _LEAD_IN.match(sentence)
    first = _FIRST_WORD.match(sentence, lead_in.end() if lead_in else 0)
    if first is None:
        return False
    language = language_of(first[1], latin)
    return first[1] in (TASK_VERBS if language is None else language.request_words)


def is_japanese(text: str) -> bool:
    """Tell whether ``text`` has kana."""
    return _KANA.search(text) is not None


def content_words(sentence: str, latin: Language | None = None) -> Iterator[tuple[str, int]]:
    """Yield each content word of ``sentence``, and how many words the server will make of it.

    Args:
        sentence: In small letters.
        latin: The language of words in Latin letters; ``None`` for English.
    """
    japanese = is_japanese(sentence)
    for clause in CLAUSE_END.split(sentence):
        opening = True
        for token in TOKEN.findall(clause):
            if token in FUNCTION_WORDS:
                opening = token in _BEFORE_A_VERB
            elif HAN_RUN.match(token):
                pieces = [token] if japanese and token not in JAPANESE_VERBS else _CHINESE_CUT.split(token)
                yield from ((piece, (len(piece) + 1) // 2) for piece in pieces if len(piece) > (not japanese))
            else:
                word = token.replace("’", "'").removesuffix("'s")
                opens, opening = opening, False
                if not _says_nothing(word, opens, latin):
                    yield word, 1 if word.isascii() else max(1, len(_WORD.findall(word)))


def _says_nothing(word: str, opens: bool, latin: Language | None) -> bool:
    if len(word) < 2 or word in FUNCTION_WORDS or (opens and word in TASK_VERBS) or _NUMBER.fullmatch(word):
        return True
    if _KANA.match(word):
        return _HIRAGANA.fullmatch(word) is not None and (len(word) < 3 or word in JAPANESE_FUNCTION_WORDS)
    language = language_of(word, latin)
    return language is not None and word in language.function_words
