"""The query that the server answers with the memories that were chosen, and with hardly any other.

The server wants a quarter of a query's distinct words in a memory. So the query has six words of each memory, those
that the fewest of the found memories have, and is filled up with blanks, words that no memory has, until five hits are
wanted: a memory that shares one or two of the words by chance stays out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .choosing import MEMORY_CHARACTERS, everyday_stems
from .everyday_words import EVERYDAY_PAIRS
from .forms import stem
from .prose import HAN, HAN_RUN
from .stop_words import FUNCTION_WORDS

_WORDS_OF_A_MEMORY: Final = 6
_HITS: Final = 5

# Of a run of Chinese, about five words. The server cuts a run into words by itself, into the same ones as in the
# memory.
_HAN_CHARACTERS: Final = 12

_WORD = re.compile(rf"[{HAN}]+|[^\W{HAN}]+(?:['’][^\W{HAN}]+)*")

_BLANK: Final = "_"
"""A word for the server, and one that no text has: alone between blanks."""


def query_for(chosen: Sequence[int], texts: Sequence[str]) -> str:
    """Return a query for the memories at the positions ``chosen`` of ``texts``, which are those that were found."""
    words = [_words(text) for text in texts]
    commonness = _Commonness(words)
    parts = [_part(sorted(words[at], key=lambda word: (commonness.of(word), -len(word)))) for at in chosen]
    most = sum(high for _, _, high in parts)
    spare = min(3 * low - (most - high) for _, low, high in parts)
    query = dict.fromkeys(word for part, _, _ in parts for word in part)
    return _with_blanks(list(query), min(spare, _blanks_for(_HITS, most)) if most > 2 else 0)


def stricter(query: str, hits: int) -> str:
    """Return ``query`` with so many blanks that the server wants ``hits`` of its words, or all if they are fewer."""
    words = query.split()
    return _with_blanks(words, _blanks_for(min(hits, len(words)), len(words)))


def _blanks_for(hits: int, words: int) -> int:
    return 4 * (hits - 1) + 1 - words


def _with_blanks(words: Sequence[str], blanks: int) -> str:
    return " ".join([*words, *(_BLANK * length for length in range(1, blanks + 1))])


def _part(words: Sequence[str]) -> tuple[list[str], int, int]:
    """Return the first of ``words``, and how many of them the server will find in the memory, at least and at most."""
    part: list[str] = []
    low = high = 0
    for word in words:
        if high >= _WORDS_OF_A_MEMORY:
            break
        part.append(word)
        han = HAN_RUN.match(word) is not None
        low += len(word) // 4 if han else 1
        high += (len(word) + 1) // 2 if han else 1
    return part, max(1, low - 1 if low == high and low > 2 else low), high


class _Commonness:
    """How many of the found memories have a word, of a Chinese run its pairs on the average.

    Everyday words and numbers come last.
    """

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self._words = [set(some) for some in words]
        self._pairs = [{pair for word in some if HAN_RUN.match(word) for pair in pairwise(word)} for some in words]
        self._known: dict[str, float] = {}

    def of(self, word: str) -> float:
        """Return the commonness of ``word``; words with less tell a memory from its like."""
        if word not in self._known:
            self._known[word] = self._of_run(word) if HAN_RUN.match(word) else self._of_word(word)
        return self._known[word]

    def _of_word(self, word: str) -> float:
        last = len(self._words) if word.isdigit() or stem(word) in everyday_stems(None) else 0
        return last + sum(word in some for some in self._words)

    def _of_run(self, run: str) -> float:
        pairs = list(pairwise(run))
        everyday = sum("".join(pair) in EVERYDAY_PAIRS for pair in pairs)
        return (everyday + sum(pair in some for pair in pairs for some in self._pairs)) / len(pairs)


def _words(text: str) -> list[str]:
    """Return the words of a memory as the server has them, of Chinese the start of each run."""
    words = _WORD.findall(unicodedata.normalize("NFC", text[:MEMORY_CHARACTERS]).casefold())
    words = [word[:_HAN_CHARACTERS] if HAN_RUN.match(word) else word.replace("’", "'") for word in words]
    return list(dict.fromkeys(word for word in words if len(word) > 1 and word not in FUNCTION_WORDS))
