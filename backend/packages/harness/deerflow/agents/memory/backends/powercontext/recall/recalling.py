"""A recall in two requests under one deadline: search, choose, prepare.

The server wants many words of a query in a memory, so we search for memories that have any, choose here, and ask the
server to prepare what was chosen. What the model gets is the server's own text, bounded and cited. A search that fails
costs at most half of the time that connecting left; then the server prepares for the best words of the request, as it
does where the search is not known.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from ..api.models import MAX_QUERY_CHARACTERS
from ..api.requests import is_unknown_route
from ..errors import PowerContextCancelledError, PowerContextError
from ..process import PerClient
from .choosing import MOST, choose, rank
from .query import focused_query_of, two_best_words
from .request import Request
from .second_query import query_for, stricter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..api.client import PowerContextClient
    from ..api.models import Hit
    from ..deadline import Deadline
    from ..settings.people import Binding

logger = logging.getLogger(__name__)

ASK_AGAIN_SECONDS: Final = 300.0
"""So long a server counts as one without the search: it may be updated."""

_SHARE_OF_A_SEARCH: Final = 0.5

_NO_SEARCH: Final = PowerContextError("the server does not know this search")

# What the server's own rule lets in must share so many words with the request when the choosing found nothing good
# enough.
_HITS_WANTED_OF_THE_REJECTED: Final = 3


class _SearchState:
    """What is known of the server's search: recall and the tools share it."""

    def __init__(self) -> None:
        self.unknown_until = 0.0
        self.fails = False


_searches = PerClient(_SearchState)


class Recall:
    """Recalls from one server. Safe for any number of threads."""

    def __init__(self, client: PowerContextClient) -> None:
        self._client = client
        self._search_state = _searches.of(client)

    def recall(self, binding: Binding, text: str, *, deadline: Deadline) -> str:
        """Return the text the server prepared for the request ``text``; ``""`` if it has none.

        Raises:
            PowerContextError: The server prepared nothing in time, or refused.
        """
        request = Request.read(text)
        hits = self._search(binding, request, deadline)
        if isinstance(hits, PowerContextError):
            if not deadline.left():  # connecting took all of it
                raise hits
            context = self._prepare(binding, focused_query_of(request) or text, two_best_words(request), deadline)
            self._tell_that_search_fails(hits)
            return context
        texts = list(dict.fromkeys(hit.text for hit in hits))
        chosen = choose(request, texts)
        if 1 <= len(chosen) <= MOST:
            context = self._client.prepare_context(binding, query_for(chosen, texts), deadline=deadline)
            if context:
                return context
        query = focused_query_of(request) or text
        if texts and not chosen:
            query = stricter(query, _HITS_WANTED_OF_THE_REJECTED)
        return self._client.prepare_context(binding, query, deadline=deadline)

    def find(self, binding: Binding, text: str, *, deadline: Deadline) -> Sequence[Hit]:
        """Return the memories that share a word with the request ``text``, the best first.

        Whoever asks for everyday words alone means them, so then they are searched for as they are.

        Raises:
            PowerContextError: The server found nothing in time, or refused.
        """
        request = Request.read(text)
        if not request.words:
            return self._client.search_memory(binding, text.strip()[:MAX_QUERY_CHARACTERS], deadline=deadline)
        hits = self._search(binding, request, deadline)
        if isinstance(hits, PowerContextError):
            return self._client.search_memory(binding, focused_query_of(request) or text, deadline=deadline)
        return [hits[at] for at in rank(request, [hit.text for hit in hits])]

    def _search(self, binding: Binding, request: Request, deadline: Deadline) -> Sequence[Hit] | PowerContextError:
        """Return the memories that have a word of ``request``, or why they could not be searched for."""
        if not request.words:
            return []
        if time.monotonic() < self._search_state.unknown_until:
            return _NO_SEARCH
        try:
            hits = self._client.search_atomic_memory(
                binding,
                " ".join(request.words),
                deadline=deadline.sharing(_SHARE_OF_A_SEARCH),
            )
        except PowerContextCancelledError:
            raise
        except PowerContextError as error:
            if not is_unknown_route(error):
                return error
            self._search_state.unknown_until = time.monotonic() + ASK_AGAIN_SECONDS
            return _NO_SEARCH
        if self._search_state.fails:
            self._search_state.fails = False
            logger.info("PowerContext recall: the search works again.")
        return hits

    def _tell_that_search_fails(self, error: PowerContextError) -> None:
        """Say once, of a search that fails while recalls go on, that they find less."""
        if error is not _NO_SEARCH and not self._search_state.fails:
            self._search_state.fails = True
            logger.warning(
                "PowerContext recall: the search failed (%s). Until it is back, recalls use one request and find less.",
                type(error).__name__,
            )

    def _prepare(self, binding: Binding, query: str, otherwise: str, deadline: Deadline) -> str:
        """Return what the server prepares for ``query``, or else for ``otherwise``.

        That is asked if there is as much time left as the first took.
        """
        started = time.monotonic()
        context = self._client.prepare_context(binding, query, deadline=deadline)
        if context or not otherwise or deadline.left() < 2 * (time.monotonic() - started):
            return context
        try:
            return self._client.prepare_context(binding, otherwise, deadline=deadline)
        except PowerContextCancelledError:
            raise
        except PowerContextError:
            return ""  # that the first query found nothing is an answer
