"""What operators read in the log: once when recall breaks, once when it is back, and what is wrong at start-up.

No line carries a URL, a Scope, an owner, a token, a request or a word of the server's reply.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from .errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextUnavailableError,
)
from .transport.forking import in_forked_children

if TYPE_CHECKING:
    from .client import PowerContextClient
    from .config import PowerContextSettings
    from .deadline import Deadline
    from .people import Binding
    from .yaml_config import ReadPolicy

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis."""

    status: Literal["ok", "warning", "failed"]
    what: str
    detail: str

    def __str__(self) -> str:
        detail = "".join(sign if sign.isprintable() else "?" for sign in self.detail)  # names of variables and files may hold anything
        return f"{self.status:<8} {self.what:<11} {detail}"


class RecallLog:
    """Counts failed recalls and logs the changes, not each call. Safe for any number of threads."""

    def __init__(self, read_policy: ReadPolicy) -> None:
        self._consequence = "Conversations start without memory" if read_policy == "fail_open" else "Runs of the owner stop"
        self._failures = 0
        self._asked_about_query = self._asked_about_people = False
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()  # a thread of a forking parent may hold the old one

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

    def asked_by(self, *, bound: bool) -> None:
        """Note who asks: an INFO, once, if a signed-in user without a binding does before anybody with one has.

        A wrong owner id shows nowhere else: the owner is then a stranger.
        """
        if self._asked_about_people:
            return
        self._asked_about_people = True
        if not bound:
            logger.info("A signed-in user who is not POWERCONTEXT_DEERFLOW_OWNER_USER_ID asked for memory, and the owner has not so far. If this was the owner, the id is wrong.")

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


def settings_warnings(settings: PowerContextSettings) -> Iterator[str]:
    """Yield what is allowed but will hardly be what the operator wants."""
    if settings.max_bytes < 1000:
        yield "POWERCONTEXT_DEERFLOW_MAX_BYTES is below 1000: hardly any memory fits into that; 8000 is the default"
    if settings.people.unlike_deerflows_ids:
        yield "POWERCONTEXT_DEERFLOW_OWNER_USER_ID is not shaped like the ids in DeerFlow's user table (a UUID in lower case): check that it is the owner's id, for nobody else gets memory"


def sign_in_problem() -> str | None:
    """Return why nobody can be told from anybody else, or ``None``. DeerFlow ignores its switch in production."""
    production = any(os.environ.get(name, "").strip().lower() in ("prod", "production") for name in ("DEER_FLOW_ENV", "ENVIRONMENT"))
    if os.environ.get("DEER_FLOW_AUTH_DISABLED") == "1" and not production:
        return "DEER_FLOW_AUTH_DISABLED=1 makes every caller `default`, who gets no memory; enable authentication"
    return None


def check_server(client: PowerContextClient, binding: Binding, deadline: Deadline) -> Iterator[Finding]:
    """Ask the server what recall and saving need of it, question by question, until one fails. Nothing is written.

    Args:
        client: The client to ask through.
        binding: Whose Scope and token are tried.
        deadline: Of all questions together.
    """
    try:
        readiness = client.get_readiness(deadline=deadline)
        if readiness.status == "not_ready":
            yield Finding("failed", "server", "PowerContext is not ready: wait for its start-up, or look into its log")
            return
        yield Finding("ok" if readiness.status == "ready" else "warning", "server", readiness.status)
        info = client.get_server_info(binding, deadline=deadline)
        yield Finding("ok", "version", f"{info.package_version} (1.3 or later)" if info else "before 1.3")
        client.get_scope(binding, deadline=deadline)
        yield _check_token(client, binding, deadline)
    except PowerContextAuthenticationError as error:
        demanded = "PowerContext demands a token: set POWERCONTEXT_DEERFLOW_TOKEN to the one it was started with"
        yield Finding("failed", "server", demanded if binding.token is None else remedy_for(error))
    except PowerContextError as error:
        yield Finding("failed", "server", remedy_for(error))


def _check_token(client: PowerContextClient, binding: Binding, deadline: Deadline) -> Finding:
    """Ask again without the token: a server that answers all the same checks none."""
    try:
        client.get_scope(replace(binding, token=None), deadline=deadline)
    except PowerContextError:
        return Finding("ok", "binding", "the token is accepted and the Scope is there")
    if binding.token is None:
        return Finding("ok", "binding", "the Scope is there; the server asks for no token")
    return Finding("warning", "binding", "the Scope is there, but the server checks no token (its authentication is off): whoever reaches it can read and change all memory")


def remedy_for(error: PowerContextError) -> str:
    """Return what an operator can do about ``error``."""
    if isinstance(error, PowerContextAuthenticationError):
        return "PowerContext refuses the token: check POWERCONTEXT_DEERFLOW_TOKEN, and that it may use the Scope"
    if isinstance(error, PowerContextScopeNotFoundError):
        return "PowerContext has no such Scope: check POWERCONTEXT_DEERFLOW_SCOPE_ID"
    if isinstance(error, PowerContextCancelledError):
        return "the check was cut off by a shutdown"
    if isinstance(error, PowerContextConnectionError):
        return f"PowerContext cannot be reached ({error}): check that it runs, and POWERCONTEXT_DEERFLOW_BASE_URL"
    if isinstance(error, PowerContextUnavailableError):
        return f"PowerContext is not ready ({error}): wait for its start-up, or look into its log"
    if isinstance(error, PowerContextStatusError):
        return _remedy_for_status(error)
    return f"PowerContext does not answer as it should ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL and the server's log"


def _remedy_for_status(error: PowerContextStatusError) -> str:
    status = error.status_code
    if status == 404:
        return "this server does not know PowerContext's API: it is older than 1.2, or POWERCONTEXT_DEERFLOW_BASE_URL leads elsewhere"
    if status in (502, 504):
        return f"a proxy on the way does not reach PowerContext ({error}): check that it runs, and the proxy's log"
    if status == 429:
        return f"a proxy on the way limits the requests ({error}): raise its limit for this Gateway"
    if status >= 500:
        return f"PowerContext fails inside ({error}): look into its log"
    if error.code is not None:
        return f"PowerContext refuses the question ({error}, {error.code}): check that its version is 1.2 or later, and its log"
    return f"something else than PowerContext answers ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way"
