"""What operators read of recalls: once when it breaks, once when it is back.

One person's trouble is told apart from everybody's.

No line carries a URL, a Scope, an owner, a token, a request or a word of the server's reply.
"""

from __future__ import annotations

import logging
import threading

from ..diagnostics import concerns_one_person, describe
from ..settings.people import Binding
from ..settings.yaml_config import ReadPolicy
from ..transport.forking import in_forked_children

logger = logging.getLogger(__name__)

_EVERYBODY = 0  # positions begin at 1


class RecallLog:
    """Counts failed recalls and logs the changes, not each call. Safe for any number of threads.

    A refused token or a missing Scope is counted for its binding alone; everything else is the server's or the
    network's trouble, and everybody's.
    """

    def __init__(self, read_policy: ReadPolicy, named_in: str) -> None:
        """``named_in`` is the variable that says whose memory this is."""
        self._consequence = "Conversations start without memory" if read_policy == "fail_open" else "Runs that need memory stop"
        self._named_in = named_in
        self._failures: dict[int, int] = {}
        self._asked_about_query = self._asked_about_people = False
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()  # a thread of a forking parent may hold the old one

    def failed(self, error: Exception, elapsed_seconds: float, binding: Binding) -> None:
        """Note a failed recall: a WARNING if the one before went well, else DEBUG."""
        whose = binding.position if concerns_one_person(error) else _EVERYBODY
        with self._lock:
            self._failures[whose] = self._failures.get(whose, 0) + 1
            level = logging.WARNING if self._failures[whose] == 1 else logging.DEBUG
        logger.log(
            level,
            "PowerContext recall failed: %s. %s until it is back.",
            describe(error, elapsed_seconds, binding),
            self._consequence,
        )

    def succeeded(self, context_bytes: int, elapsed_seconds: float, binding: Binding) -> None:
        """Note a recall that went well: an INFO if the one before failed, else DEBUG."""
        logger.debug("PowerContext recall: %d bytes, %.0f ms.", context_bytes, elapsed_seconds * 1000)
        if not self._failures:  # read without the lock: this is every healthy recall's path
            return
        with self._lock:
            everybodys = self._failures.pop(_EVERYBODY, 0)
            own = self._failures.pop(binding.position, 0)
        if own and binding.count > 1:
            logger.info(
                "PowerContext recall is back for binding %d of %d; failed calls in between: %d.",
                binding.position,
                binding.count,
                own,
            )
        if everybodys or (own and binding.count == 1):
            logger.info(
                "PowerContext recall is back; failed calls in between: %d.",
                everybodys + (own if binding.count == 1 else 0),
            )

    def asked_by(self, *, bound: bool) -> None:
        """Note who asks: an INFO, once, if a signed-in user without a binding does before anybody with one has.

        A wrong owner id shows nowhere else: the owner is then a stranger.
        """
        if self._asked_about_people:
            return
        self._asked_about_people = True
        if not bound:
            logger.info(
                "A signed-in user whom %s does not name asked for memory, and nobody it names has so far. If this user is to have memory, the id there is wrong.",
                self._named_in,
            )

    def query_seen(self, query: object) -> None:
        """Note whether the host forwards the request.

        It is an INFO, once, if the first recall comes without, or with anything but text.
        """
        if self._asked_about_query:
            return
        self._asked_about_query = True
        if not isinstance(query, str):
            logger.info(
                "DeerFlow asked for memory without a query that is text, so there is none. Recall needs a DeerFlow that forwards the user's request (September 2026 or later).",
            )
