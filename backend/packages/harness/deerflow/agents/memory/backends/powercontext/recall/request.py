"""A request as recall sees it: what a memory may share with it, and the words to search for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..api.models import MAX_QUERY_CHARACTERS
from .forms import forms, latin_language, stem
from .languages import Language
from .prose import CLAUSE_END, HAN_RUN, TOKEN, prose_of, sentences_of
from .sentences import asks, content_words, is_japanese, without_constraints

MAX_SEARCH_WORDS: Final = 120
"""All content words of a request of a thousand characters; the server takes some 20 ms for as many."""

MAX_WORDS_WITH_FORMS: Final = 60
"""Up to so many words, other forms of the words of a short request are searched for, too."""

ASIDE: Final = 0.7
"""What a word counts that is not in a question."""

_KATAKANA = re.compile("[ァ-ヺー]{2,}")
_HIRAGANA = re.compile("[ぁ-ゟ]+")


@dataclass(frozen=True)
class Request:
    """A request, read once.

    Attributes:
        terms: Stems, and pairs of Chinese characters, each with what it counts: 1, or ``ASIDE``.
        phrases: Those of the stems that stand side by side.
        words: What to search for, the words of the questions first, and then other forms of them.
        sentences: What is wanted, sentence by sentence, and whether it asks.
        latin: The language of words in Latin letters; ``None`` for English.
    """

    terms: Mapping[str, float]
    phrases: frozenset[tuple[str, str]]
    words: Sequence[str]
    sentences: Sequence[tuple[str, bool]]
    latin: Language | None

    @classmethod
    def read(cls, text: str) -> Request:
        """Read ``text``, of which only the first ``MAX_QUERY_CHARACTERS`` count."""
        text = unicodedata.normalize("NFC", text.lstrip()[:MAX_QUERY_CHARACTERS])
        sentences = sentences_of(prose_of(text).lower())
        tokens = (token for sentence in sentences for token in TOKEN.findall(sentence))
        latin = latin_language(word for token in tokens for word in token.replace("’", "'").split("'"))
        wanted = [rest for sentence in sentences if (rest := without_constraints(sentence))]
        if not any(_has_content(sentence, latin) for sentence in wanted):
            wanted = sentences
        marked = [(sentence, asks(sentence, latin)) for sentence in wanted]
        asking = any(asked for _, asked in marked)
        terms: dict[str, float] = {}
        words: dict[str, None] = {}
        for sentence, asked in sorted(marked, key=lambda pair: not pair[1]):
            for word, _ in content_words(sentence, latin):
                words[word] = None
                for term in terms_of(word, latin):
                    terms.setdefault(term, ASIDE if asking and not asked else 1.0)
        clauses = (clause for sentence, _ in marked for clause in CLAUSE_END.split(sentence))
        pairs = (pair for clause in clauses for pair in pairwise(terms_of(clause, latin)))
        phrases = frozenset(pair for pair in pairs if terms.keys() >= set(pair) and not HAN_RUN.match("".join(pair)))
        return cls(terms, phrases, _with_forms(list(words)[:MAX_SEARCH_WORDS], latin), marked, latin)


def _has_content(sentence: str, latin: Language | None) -> bool:
    return next(content_words(sentence, latin), None) is not None


def terms_of(text: str, latin: Language | None) -> list[str]:
    """Return what ``text`` has to share.

    That is the stems of its words, of Chinese the pairs of characters, of kana the katakana words.
    """
    terms: list[str] = []
    single = is_japanese(text)
    for token in TOKEN.findall(text):
        if HAN_RUN.match(token):
            terms += map(str.__add__, token, token[1:]) if len(token) > 1 else [token]
        elif single and _HIRAGANA.search(token):
            terms += _KATAKANA.findall(token) or [token]
        else:
            terms.append(stem(token.replace("’", "'").removesuffix("'s"), latin))
    return terms


def _with_forms(words: list[str], latin: Language | None) -> list[str]:
    """Return ``words`` and, while there is room, other forms of them: those of the first words first."""
    found = dict.fromkeys(words)
    for word in words:
        if len(found) >= MAX_WORDS_WITH_FORMS:
            break
        if not HAN_RUN.match(word):
            found |= dict.fromkeys(forms(word, latin))
    return list(found)
