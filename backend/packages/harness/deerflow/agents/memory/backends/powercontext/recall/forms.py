"""Other forms of a word: what its forms have in common, and which of them a memory may have.

The server matches whole words only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from .languages import ARABIC, GERMAN, JAPANESE_PARTICLES, KOREAN, LATIN, RUSSIAN, Language
from .stop_words import FUNCTION_WORDS, TASK_VERBS

_NO_PLURAL: Final = ("ed", "ing", "ly", "ous", "ful", "ss", "us", "is", "news", "series")
_VOWEL = re.compile("[aeiouy]")
_KATAKANA = re.compile("[ァ-ヺー]{2,}")
_UMLAUTS = str.maketrans("aou", "äöü")


def language_of(word: str, latin: Language | None) -> Language | None:
    """Return the language of ``word`` by its script.

    ``latin`` is that of words in Latin letters, ``None`` for English.
    """
    first = word[0]
    if "Ѐ" <= first <= "ӿ":
        return RUSSIAN
    if "؀" <= first <= "ۿ":
        return ARABIC
    if "가" <= first <= "힣":
        return KOREAN
    return latin if first < "ɐ" else None


def _telling_words() -> dict[str, list[int]]:
    """Return the words that tell a language, with the positions in ``LATIN`` of those that have it; -1 is English."""
    telling: dict[str, list[int]] = {}
    for at, words in enumerate(
        [FUNCTION_WORDS | TASK_VERBS, *(language.function_words | language.request_words for language in LATIN)],
        start=-1,
    ):
        for word in words:
            telling.setdefault(word, []).append(at)
    return telling


_TELLING: Final = _telling_words()


def latin_language(words: Iterable[str]) -> Language | None:
    """Return the language to which the most of ``words`` belong; ``None`` if that is English, or none."""
    counts = Counter(at for word in words for at in _TELLING.get(word, ()))
    best = max(range(-1, len(LATIN)), key=lambda at: counts[at])  # the first of those with as many
    return LATIN[best] if best >= 0 else None


@lru_cache(maxsize=4096)
def stem(word: str, latin: Language | None = None) -> str:
    """Return what the forms of ``word`` have in common, roughly."""
    language = language_of(word, latin)
    if language is None:
        return _english_stem(word) if word.isascii() else word
    return fold(_base(word, language)) if language is not KOREAN else _base(word, language)


def fold(word: str) -> str:
    """Return ``word`` without accents and vowel signs."""
    return word if word.isascii() else "".join(sign for sign in unicodedata.normalize("NFD", word) if unicodedata.category(sign) != "Mn")


@lru_cache(maxsize=4096)
def forms(word: str, latin: Language | None = None) -> tuple[str, ...]:
    """Return other forms of ``word`` that are worth a search; some of them exist."""
    language = language_of(word, latin)
    if language is None:
        if word.isascii():
            return tuple(_english_forms(word))
        return tuple(katakana + particle for katakana in _KATAKANA.findall(word) for particle in JAPANESE_PARTICLES)
    base = _base(word, language)
    bases = [base] if base.isascii() or language in (RUSSIAN, ARABIC, KOREAN) else [base, fold(base)]
    if language is GERMAN and (umlaut := _with_umlaut(base)):
        bases.append(umlaut)
    found: dict[str, None] = {}
    for some in bases:
        found |= dict.fromkeys([some, *(beginning + some for beginning in language.beginnings[::-1])])
        found |= dict.fromkeys(some + ending for ending in language.endings[::-1])
    return tuple(form for form in found if form != word)


def other_number(word: str) -> str | None:
    """Return the plural of an English singular, the singular of a plural, or ``None`` where neither is likely."""
    if not (word.isascii() and word.isalpha()) or len(word) < 3 or word.endswith(_NO_PLURAL):
        return None
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if word.endswith("s"):
        return word[:-1]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "x")) else "s")


def _base(word: str, language: Language) -> str:
    """Return ``word`` without its beginning and its ending, if enough is left."""
    for beginning in language.beginnings:
        if word.startswith(beginning) and len(word) - len(beginning) >= language.shortest_stem:
            word = word[len(beginning) :]
            break
    for ending in language.endings:
        if word.endswith(ending) and len(word) - len(ending) >= language.shortest_stem:
            return word[: -len(ending)]
    return word


def _with_umlaut(base: str) -> str | None:
    """Return a German stem with an umlaut for its last a, o or u, or without the one it has."""
    plain = fold(base)
    if plain != base:
        return None  # is among the bases already
    at = max(base.rfind(vowel) for vowel in "aou")
    return base[:at] + base[at:].translate(_UMLAUTS) if at >= 0 else None


def _english_stem(word: str) -> str:
    if not word.isalpha() or len(word) < 4:
        return word
    word = (other_number(word) or word) if word.endswith("s") else word
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and _VOWEL.search(rest):
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    word = word[:-1] if word.endswith("e") and len(word) > 4 else word
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _english_forms(word: str) -> list[str]:
    other = other_number(word)
    if not word.isalpha() or len(word) < 4:
        return [other] if other else []
    base = _english_stem(word)
    verb = base[:-1] + "y" if base.endswith("i") else base
    found = [other, verb, verb + "ed", verb + "ing"]
    if word != verb:  # an ending was cut, perhaps with an e
        found += [verb + "e", verb + "es", verb + "s"]
    return [form for form in dict.fromkeys(found) if form and form != word]
