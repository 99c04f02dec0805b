"""What operators read in the log: once when recall breaks, once when it is back, and what is wrong at start-up.

No line carries a URL, a Scope, an owner, a token, a request or a word of the server's reply.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from .errors import (
    PowerContextAuthenticationError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
)

if TYPE_CHECKING:
    from .client import PowerContextClient
    from .config import ReadPolicy

logger = logging.getLogger(__name__)


class RecallLog:
    """Counts failed recalls and logs the changes, not each call. Safe for any number of threads."""

    def __init__(self, read_policy: ReadPolicy) -> None:
        self._consequence = "Conversations start without memory" if read_policy == "fail_open" else "Runs of the owner stop"
        self._lock = threading.Lock()
        self._failures = 0
        self._asked_about_query = False

    def failed(self, error: Exception, elapsed_seconds: float) -> None:
        """Note a failed recall: a WARNING if the one before went well, else DEBUG."""
        with self._lock:
            self._failures += 1
            level = logging.WARNING if self._failures == 1 else logging.DEBUG
        logger.log(level, "PowerContext recall failed: %s. %s until it is back.", describe(error, elapsed_seconds), self._consequence)

    def succeeded(self, context_bytes: int, elapsed_seconds: float) -> None:
        """Note a recall that went well: an INFO if the one before failed, else DEBUG."""
        logger.debug("PowerContext recall: %d bytes, %.0f ms.", context_bytes, elapsed_seconds * 1000)
        if not self._failures:  # read without the lock: this is every healthy recall's path
            return
        with self._lock:
            failures, self._failures = self._failures, 0
        if failures:
            logger.info("PowerContext recall is back; failed calls in between: %d.", failures)

    def query_seen(self, query: object) -> None:
        """Note whether the host forwards the request: an INFO, once, if its first recall comes without, or with anything but text."""
        if self._asked_about_query:
            return
        self._asked_about_query = True
        if not isinstance(query, str):
            logger.info("DeerFlow asked for memory without a query that is text, so there is none. Recall needs a DeerFlow that forwards the user's request (September 2026 or later).")


def describe(error: Exception, elapsed_seconds: float) -> str:
    """Return what may be logged of ``error``: its class, operation, reason or status, code and request id, and the time it took."""
    facts = [type(error).__name__]
    if isinstance(error, PowerContextError):
        facts += [f"in {error.operation}", str(error)]
        code = getattr(error, "code", None)
        facts += [f"code {code}"] if code else []
        facts += [f"request {error.request_id}"] if error.request_id else []
    return ", ".join([*facts, f"{elapsed_seconds * 1000:.0f} ms"])


def check_server(client: PowerContextClient, *, timeout_seconds: float) -> str | None:
    """Ask the server what recall and saving need of it. Return what is wrong and how to mend it, or ``None``.

    Args:
        client: The client to ask through; nothing is written.
        timeout_seconds: The limit of all questions together.
    """
    deadline = time.monotonic() + timeout_seconds

    def left() -> float:
        return max(0.001, deadline - time.monotonic())

    try:
        if client.get_readiness(timeout_seconds=left()).status == "not_ready":
            return "PowerContext is not ready: wait for its start-up, or look into its log"
        client.get_server_info(timeout_seconds=left())
        client.get_scope(timeout_seconds=left())
    except PowerContextError as error:
        return remedy_for(error)
    return None


def remedy_for(error: PowerContextError) -> str:
    """Return what an operator can do about ``error``."""
    if isinstance(error, PowerContextAuthenticationError):
        return "PowerContext refuses the token: check POWERCONTEXT_DEERFLOW_TOKEN, and that it may use the Scope"
    if isinstance(error, PowerContextScopeNotFoundError):
        return "PowerContext has no such Scope: check POWERCONTEXT_DEERFLOW_SCOPE_ID"
    if isinstance(error, PowerContextConnectionError):
        return f"PowerContext cannot be reached ({error}): check that it runs, and POWERCONTEXT_DEERFLOW_BASE_URL"
    if isinstance(error, PowerContextStatusError) and error.status_code == 404:
        return "this server does not know PowerContext's API: it is older than 1.2, or POWERCONTEXT_DEERFLOW_BASE_URL leads elsewhere"
    if isinstance(error, PowerContextStatusError):
        return f"PowerContext is not ready ({error}): wait for its start-up, or look into its log"
    return f"PowerContext does not answer as it should ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL and the server's log"
