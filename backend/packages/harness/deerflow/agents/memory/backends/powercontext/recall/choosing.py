"""Which of the memories that were found belong to a request.

Each memory gets the sum of the values of the words it shares with the request. A word is worth less

* the more of the found memories have it, and the more have all that this memory shares,
* if it names a form of work and not a subject ("report"),
* if it is not in a question.

Two words side by side in both are worth more. One rare word is enough in a short request, an everyday one is not; a
long request wants more, for it shares something with everybody. Up to ``MOST`` memories near the best are chosen.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from .everyday_words import EVERYDAY_PAIRS, EVERYDAY_WORDS
from .forms import language_of, stem
from .languages import Language
from .prose import HAN_RUN
from .request import Request, terms_of
from .stop_words import TASK_VERBS

CANDIDATES: Final = 50
"""Memories to choose from. A word that all of them have is worth nothing."""

MEMORY_CHARACTERS: Final = 2000
"""Of a memory, so much is looked at, which bounds the time. It is more than the server puts into a recalled text."""

MOST: Final = 3

EVERYDAY: Final = 0.5
"""What an everyday word is worth, beside 1 for a rare one."""

# Found by cross-validation over the sets of prompts in two tries, of which each was made without the other; none is
# sharp.
_FLOOR = 0.65
_SHORT_REQUEST = 8.0  # words; a longer one wants more, with the root of its length
_NEAR_BEST = 0.55
_PHRASE = 0.6
_HAN_PAIR = 0.8  # two Chinese characters side by side are most of a word ...
_HAN_LENGTH = 0.5  # ... but pairs overlap: a run has about twice as many as words


def rank(request: Request, texts: Sequence[str]) -> list[int]:
    """Return the positions of those of ``texts`` that share anything with ``request``, the best first."""
    scores = _scores(request, texts)
    return [at for at in _best_first(scores) if scores[at] > 0]


def choose(request: Request, texts: Sequence[str]) -> list[int]:
    """Return the positions of the few of ``texts`` that belong to ``request``, the best first; none if none does.

    They are more than ``MOST`` only if so many are as good as each other.

    Args:
        request: What was asked.
        texts: Different memories that have a word of it, at most ``CANDIDATES``.
    """
    scores = _scores(request, texts)
    length = sum(weight * (_HAN_LENGTH if HAN_RUN.match(term) else 1) for term, weight in request.terms.items())
    floor = _FLOOR * math.sqrt(max(1.0, length / _SHORT_REQUEST))
    best = max(scores, default=0.0)
    chosen = [at for at in _best_first(scores) if scores[at] >= max(floor, _NEAR_BEST * best)]
    if len(chosen) > MOST:
        return [at for at in chosen[:MOST] if scores[at] > scores[chosen[MOST]] + 1e-9] or chosen
    return chosen


def _scores(request: Request, texts: Sequence[str]) -> list[float]:
    """Return what each of ``texts`` shares with ``request``."""
    read = [unicodedata.normalize("NFC", text[:MEMORY_CHARACTERS]).casefold() for text in texts]
    ordered = [terms_of(text, request.latin) for text in read]
    shared = [frozenset(request.terms.keys() & terms) for terms in ordered]
    rarity = {term: _rarity(count) for term, count in Counter(term for terms in shared for term in terms).items()}
    alike = Counter(shared)
    together = {terms: _rarity(sum(count for others, count in alike.items() if others >= terms)) for terms in alike}
    values = {term: request.terms[term] * value_of(term, request) for term in rarity}
    scores = []
    for terms, order in zip(shared, ordered, strict=True):
        phrases = len(request.phrases.intersection(pairwise(order))) if len(terms) > 1 else 0
        shares = sorted(values[term] * (rarity[term] + together[terms]) / 2 for term in terms)
        scores.append(sum(shares) + _PHRASE * phrases * together[terms])
    return scores


def _rarity(sharers: int) -> float:
    return max(0.0, 1 - math.log(sharers) / math.log(CANDIDATES))


def value_of(term: str, request: Request) -> float:
    """Return what it says for a memory to have ``term``, if no other has it."""
    if HAN_RUN.match(term):
        return _HAN_PAIR * (EVERYDAY if term in EVERYDAY_PAIRS else 1)
    return EVERYDAY if term in everyday_stems(language_of(term, request.latin)) else 1


@cache
def everyday_stems(language: Language | None) -> frozenset[str]:
    """Return the stems of a language's everyday words; ``None`` is English.

    An English everyday word is one in every language.
    """
    english = frozenset(map(stem, EVERYDAY_WORDS | TASK_VERBS))
    return english if language is None else english | {stem(word, language) for word in language.request_words}


def _best_first(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda at: -scores[at])
