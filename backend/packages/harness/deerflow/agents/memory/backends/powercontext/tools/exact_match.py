"""Looking a memory up by its text: is exactly this there?

The first question is for memories with words of the text, stop words too: those are in the server's index, and a query
in quotes keeps them. Fewer hits than a search returns are all there are. Otherwise the second question is for memories
of the kind that have every word. Where that is not enough either, and for a text without a word, the memories of the
kind are listed, page by page, for half of the time that is left.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ..api.client import MAX_MATCHES, PowerContextClient
from ..api.models import MAX_QUERY_CHARACTERS, Hit
from ..api.requests import MAX_HITS
from ..deadline import Deadline
from ..errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
)
from ..settings.people import Binding
from .outcomes import normalize

MAX_WORDS: Final = 40
"""A query of more is slow, and no narrower."""

MAX_CHARACTERS: Final = 2000
"""The same, for languages that put no blanks between words."""

# The first pause before a question that failed is asked again, in seconds; each is twice the one before.
FIRST_PAUSE_SECONDS: Final = 0.05

# As the server splits a text; it goes on to split Chinese, but only within one of these.
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")

_Answer = TypeVar("_Answer")


def find(
    client: PowerContextClient,
    binding: Binding,
    kind: str,
    text: str,
    *,
    deadline: Deadline,
    patient: bool = False,
) -> Hit | None:
    """Return the active memory with exactly this text and, where the server tells it, kind; ``None`` without one.

    A question that fails is asked again, after a short pause, as long as there is time: without an answer a text may be
    stored twice, or a save be left unknown.

    Args:
        client: The process's.
        binding: In whose Scope.
        kind: The memory's.
        text: The memory's, normalized.
        deadline: Of the whole look-up.
        patient: Whether to wait for a server that nothing connects to, too.
    """
    return _LookUp(client, binding, kind, text, deadline, patient).run()


def words_to_look_for(text: str) -> list[str]:
    """Return the words a memory with this text must have; none if there is no word in it.

    Of a long text only some: first those with a digit, then the longest, which are the rarest.
    """
    every = list(dict.fromkeys(_WORD.findall(text)))
    if len(every) > MAX_WORDS or sum(map(len, every)) > MAX_CHARACTERS:
        every.sort(key=lambda word: (not any(map(str.isdigit, word)), -len(word)))
    words: list[str] = []
    for word in every[:MAX_WORDS]:
        if not words or len(word) + sum(map(len, words)) <= MAX_CHARACTERS:
            words.append(word)
    return words


def _quoted(words: list[str]) -> str:
    query = " ".join(words)
    return f'"{query}"' if len(query) + 2 <= MAX_QUERY_CHARACTERS else query


@dataclass(frozen=True, slots=True)
class _LookUp:
    """One look-up: what is looked for, where, and until when."""

    client: PowerContextClient
    binding: Binding
    kind: str
    text: str
    deadline: Deadline
    patient: bool

    def run(self) -> Hit | None:
        words = words_to_look_for(self.text)
        if words:
            hits = self._ask(lambda: self.client.search_memory(self.binding, _quoted(words), deadline=self.deadline))
            found = self._first(hits)
            if found is not None or len(hits) < MAX_HITS:
                return found
        try:
            return self._look_closer(words)
        except PowerContextStatusError as error:
            if _does_not_know_the_question(error):
                return None
            raise

    def _look_closer(self, words: list[str]) -> Hit | None:
        if words:
            # Of two words or fewer one is enough for the server; the kind, which each of these memories has, makes it
            # three.
            query = _quoted([self.kind, *words] if len(words) > 1 else words)
            hits = self._ask(
                lambda: self.client.search_atomic_memory(
                    self.binding,
                    query,
                    every_word_of=self.kind,
                    deadline=self.deadline,
                ),
            )
            found = self._first(hits)
            if found is not None or len(hits) < MAX_MATCHES:
                return found
        return self._list()

    def _list(self) -> Hit | None:
        """Look through all memories of the kind; ``None`` also if there is no time for all of them.

        No page is asked for in the second half of the time: the last one may take longer than those before it.
        """
        cursor: str | None = None
        half = self.deadline.left() / 2
        while True:
            list_page = partial(self.client.list_atomic_memories, self.binding, self.kind, cursor)
            page = self._ask(partial(list_page, deadline=self.deadline))
            found = self._first(page.hits)
            cursor = page.next_cursor
            if found is not None or cursor is None or self.deadline.left() < half:
                return found

    def _first(self, hits: Sequence[Hit]) -> Hit | None:
        for hit in hits:
            if hit.state == "active" and normalize(hit.text) == self.text and hit.kind in (None, self.kind):
                return hit
        return None

    def _may_help(self, error: PowerContextError) -> bool:
        """Tell whether to ask once more may help."""
        if isinstance(error, PowerContextConnectionError):
            return self.patient
        return not _is_an_answer(error)

    def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return question()
            except PowerContextError as error:
                if not self._may_help(error) or self.deadline.left() <= pause:
                    raise
            time.sleep(pause)
            pause *= 2


def _does_not_know_the_question(error: PowerContextStatusError) -> bool:
    """Tell whether the server does not know the question.

    One before 1.3 answers 404 or 405, and stores no text twice; one that does not know a field answers 422.
    """
    return error.status_code in (404, 405) or error.code in ("invalid_request", "invalid_access_request")


def _is_an_answer(error: PowerContextError) -> bool:
    """Tell whether to ask again is of no use."""
    if isinstance(error, PowerContextAuthenticationError | PowerContextScopeNotFoundError | PowerContextCancelledError):
        return True
    return isinstance(error, PowerContextStatusError) and _does_not_know_the_question(error)
