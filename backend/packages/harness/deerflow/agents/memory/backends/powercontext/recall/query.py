"""From a request to the few words worth searching.

PowerContext's default store matches whole words, without stemming, and wants a quarter of a query's distinct words in a
memory: two of three to eight, three of nine. A whole request (greeting, log, conditions) is diluted below that. So we
look for what is asked, take its content words, and stop at eight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .choosing import EVERYDAY, value_of
from .forms import other_number
from .languages import Language
from .request import Request, terms_of
from .sentences import content_words

MAX_WORDS: Final = 8
"""Above it the server wants a third hit (1.4.1 and 1.2.0)."""

_MOST_FOR_LENGTH = 0.012
_CHINESE_NUMBER = re.compile("[一二三四五六七八九十百千两几每]")

# The first sentence of a request must not fill the query alone when the request has more of them.
_MAX_WORDS_OF_A_SENTENCE = 4


def focused_query(text: str) -> str:
    """Return up to ``MAX_WORDS`` words of a request, or the request itself if it has no word worth searching.

    Code, logs, URLs and paths are left out, and so are conditions on the work. What is asked comes first, the last
    question before the earlier ones, then what stands near it. With three to seven words, singular and plural forms
    fill the free places: they cost nothing, the server wants two hits all the same. With one or two it wants a single
    hit, and nothing is added.

    Args:
        text: The user's request in any language; what is behind ``MAX_QUERY_CHARACTERS`` is not looked at. Takes
            time in proportion to its length.
    """
    return focused_query_of(Request.read(text)) or text


def focused_query_of(request: Request) -> str:
    """Return up to ``MAX_WORDS`` words of ``request``.

    Those of the questions come first, the last question's before the earlier ones'.
    """
    sentences = [sentence for sentence, _ in request.sentences]
    asking = [position for position, (_, asks) in enumerate(request.sentences) if asks][::-1]
    others = sorted(set(range(len(sentences))).difference(asking))
    if asking:
        others.sort(key=lambda position: abs(position - asking[0]))

    query = _Query(request.latin)
    asked = [list(content_words(sentences[position], request.latin)) for position in asking]
    query.take(asked, _MAX_WORDS_OF_A_SENTENCE)
    query.take(asked, MAX_WORDS)
    query.add_variants()
    query.take((content_words(sentences[position], request.latin) for position in others), MAX_WORDS)
    query.add_variants()
    return " ".join(query.words)


class _Query:
    """The words so far, and how many the server will count: of Chinese, one for two characters."""

    def __init__(self, latin: Language | None) -> None:
        self._latin = latin
        self.words: list[str] = []
        self._seen: set[str] = set()
        self._count = 0

    def take(self, sentences: Iterable[Iterable[tuple[str, int]]], limit: int) -> None:
        """Take the content words of ``sentences``, up to ``limit`` from each, while there is room."""
        for words in sentences:
            if self._count >= MAX_WORDS:
                return
            taken = 0
            for word, count in words:
                if word in self._seen or (self.words and (self._count + count > MAX_WORDS or taken + count > limit)):
                    continue
                taken += count
                self._add(word, count)

    def add_variants(self) -> None:
        """Fill the free places with other forms of the words.

        It does so only if that cannot raise the number of hits the server wants.
        """
        if self._count >= 3:
            for variant in [other_number(word) for word in self.words if self._latin is None]:
                if self._count < MAX_WORDS and variant and variant not in self._seen:
                    self._add(variant, 1)

    def _add(self, word: str, count: int) -> None:
        self.words.append(word)
        self._seen.add(word)
        self._count += count


def two_best_words(request: Request) -> str:
    """Return the word or two of ``request`` that say most, everyday words aside.

    The server wants a single hit of them.
    """
    words = dict.fromkeys(word for sentence, _ in request.sentences for word in content_words(sentence, request.latin))
    chosen: list[str] = []
    places = 2
    for word, size in sorted(words, key=lambda found: -_worth(found[0], request)):
        if _worth(word, request) > EVERYDAY + _MOST_FOR_LENGTH and (not chosen or size <= places):
            chosen.append(word)
            places -= size
    return " ".join(chosen)


def _worth(word: str, request: Request) -> float:
    """Return what ``word`` says, at the least; of two that say the same, the longer is the rarer one, as a rule."""
    value = min(
        (request.terms.get(term, 0.0) * value_of(term, request) for term in terms_of(word, request.latin)),
        default=0.0,
    )
    length = min(len(word) * (1 if word.isascii() else 2), 12)
    return value / (2 if _CHINESE_NUMBER.search(word) else 1) + _MOST_FOR_LENGTH * length / 12
