"""What operators read about errors, about settings that are allowed but odd, and about the server.

No line carries a URL, a Scope, an owner, a token, a request or a word of the server's reply.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from .errors import (
    BROKEN,
    BY_HTTPS,
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextResponseError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextTimeoutError,
    PowerContextUnavailableError,
)

if TYPE_CHECKING:
    from .api.client import PowerContextClient
    from .deadline import Deadline
    from .settings.loading import PowerContextSettings
    from .settings.people import Binding
_LIST_SCOPES: Final = 'POWERCONTEXT_CLIENT_SERVER_URL="$POWERCONTEXT_DEERFLOW_BASE_URL" POWERCONTEXT_CLIENT_API_TOKEN="$POWERCONTEXT_DEERFLOW_TOKEN" powercontext scope list'
MAX_TOLD: Final = 20
"""So many numbers or ranges of them are told."""


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis."""

    status: Literal["ok", "warning", "failed"]
    what: str
    detail: str

    def __str__(self) -> str:
        # names of variables and files may hold anything
        detail = "".join(sign if sign.isprintable() else "?" for sign in self.detail)
        return f"{self.status:<8} {self.what:<11} {detail}"


def concerns_one_person(error: Exception) -> bool:
    """Tell whether ``error`` is about a person's token or Scope, and so nobody else's."""
    return isinstance(error, PowerContextAuthenticationError | PowerContextScopeNotFoundError)


def describe(error: Exception, elapsed_seconds: float, binding: Binding | None = None) -> str:
    """Return what may be logged of ``error``.

    That is its class, operation, reason or status, code and request id, and the time it took.

    Of several people's ``binding`` the number is told, where the error is about that person alone.
    """
    facts = [type(error).__name__]
    if isinstance(error, PowerContextError):
        facts += [f"in {error.operation}", str(error)]
        code = getattr(error, "code", None)
        facts += [f"code {code}"] if code else []
        facts += [f"request {error.request_id}"] if error.request_id else []
    if binding is not None and binding.count > 1 and concerns_one_person(error):
        facts.append(repr(binding))
    return ", ".join([*facts, f"{elapsed_seconds * 1000:.0f} ms"])


def settings_warnings(settings: PowerContextSettings, bindings_file: str = "it") -> Iterator[str]:
    """Yield what is allowed but will hardly be what the operator wants.

    ``bindings_file`` is what to call that file in a command.
    """
    if settings.max_bytes < 1000:
        yield "POWERCONTEXT_DEERFLOW_MAX_BYTES is below 1000: hardly any memory fits into that; 8000 is the default"
    if settings.bindings_are_open:
        yield f"the file of POWERCONTEXT_DEERFLOW_BINDINGS_FILE can be read or changed by others than its owner, and it decides who gets whose memory: chmod 600 {bindings_file}, if it is no secret that a container was given"
    if odd := settings.people.unlike_deerflows_ids:
        rest = "not shaped like the ids in DeerFlow's user table (a UUID in lower case): check it, for nobody else gets that memory"
        yield (f"{settings.named_in} is {rest}" if settings.bindings_file is None else f"{settings.named_in}: owner_user_id of {positions(odd)} is {rest}")


def positions(bindings: Iterable[Binding]) -> str:
    """Return the numbers of ``bindings`` as a person writes them: ``bindings 1-3, 7``; of many, the first.

    ``bindings`` are in order.
    """
    numbers = [binding.position for binding in bindings]
    return f"{'binding' if len(numbers) == 1 else 'bindings'} {told(numbers)}"


def told(numbers: Iterable[int]) -> str:
    """Return ``numbers``, which are in order, as a person writes them: ``1-3, 7``; of many, the first."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(texts[:MAX_TOLD]) + (" and more" if len(texts) > MAX_TOLD else "")


def sign_in_problem() -> str | None:
    """Return why nobody can be told from anybody else, or ``None``. DeerFlow ignores its switch in production."""
    production = any(os.environ.get(name, "").strip().lower() in ("prod", "production") for name in ("DEER_FLOW_ENV", "ENVIRONMENT"))
    if os.environ.get("DEER_FLOW_AUTH_DISABLED") == "1" and not production:
        return "DEER_FLOW_AUTH_DISABLED=1 makes every caller `default`, who gets no memory; remove it from the Gateway's environment"
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
        yield _check_version(client, binding, deadline)
        client.get_scope(binding, deadline=deadline)
        yield _check_token(client, binding, deadline)
    except PowerContextAuthenticationError as error:
        demanded = "PowerContext demands a token: set POWERCONTEXT_DEERFLOW_TOKEN to the one it was started with"
        yield Finding("failed", "server", demanded if binding.token is None else remedy_for(error))
    except PowerContextError as error:
        yield Finding("failed", "server", remedy_for(error))


def _check_version(client: PowerContextClient, binding: Binding, deadline: Deadline) -> Finding:
    """Ask for the version, which a token that may use a Scope and nothing else is not told."""
    try:
        info = client.get_server_info(binding, deadline=deadline)
    except PowerContextAuthenticationError as error:
        if error.status_code != 403:
            raise
        return Finding("ok", "version", "not told to this token")
    return Finding("ok", "version", f"{info.package_version} (1.3 or later)" if info else "before 1.3")


def _check_token(client: PowerContextClient, binding: Binding, deadline: Deadline) -> Finding:
    """Ask again without the token: a server that answers all the same checks none."""
    try:
        client.get_scope(replace(binding, token=None), deadline=deadline)
    except PowerContextError:
        return Finding("ok", "binding", "the token is accepted and the Scope is there")
    if binding.token is None:
        return Finding("ok", "binding", "the Scope is there; the server asks for no token")
    return Finding(
        "warning",
        "binding",
        "the Scope is there, but the server checks no token (its authentication is off): whoever reaches it can read and change all memory; start it with POWERCONTEXT_SERVER_AUTH_ENABLED=true and POWERCONTEXT_SERVER_AUTH_TOKEN=<the token>",
    )


def remedy_for(error: PowerContextError) -> str:
    """Return what an operator can do about ``error``."""
    if isinstance(error, PowerContextAuthenticationError):
        if error.operation == "get_readiness":  # which asks for no token, so this is not the token's fault
            return "PowerContext has nothing at this path: remove the path, such as /v1, from POWERCONTEXT_DEERFLOW_BASE_URL, or let the proxy take it off"
        return "PowerContext refuses the token: check POWERCONTEXT_DEERFLOW_TOKEN, that it may use the Scope, and that a proxy on the way passes the Authorization header"
    if isinstance(error, PowerContextScopeNotFoundError):
        return f"PowerContext has no such Scope: check POWERCONTEXT_DEERFLOW_SCOPE_ID; this shows those it has, where the Gateway's variables are set: {_LIST_SCOPES}"
    if isinstance(error, PowerContextCancelledError):
        return "the check was cut off by a shutdown"
    if isinstance(error, PowerContextConnectionError):
        if ": " in str(error):  # a cause that has its remedy
            return f"PowerContext cannot be reached: {error}"
        return f"PowerContext cannot be reached ({error}): check that it runs, and POWERCONTEXT_DEERFLOW_BASE_URL"
    if isinstance(error, PowerContextUnavailableError) and error.code is not None:
        return f"PowerContext is not ready ({error}): wait for its start-up, or look into its log"
    if isinstance(error, PowerContextStatusError):
        return _remedy_for_status(error)
    if ": " in str(error):
        return f"PowerContext does not answer: {error}"
    if isinstance(error, PowerContextTimeoutError):
        return f"PowerContext does not answer in time ({error}): look into its log and its machine's load, and check the port in POWERCONTEXT_DEERFLOW_BASE_URL"
    if error.operation == "get_readiness" and isinstance(error, PowerContextResponseError):
        return _remedy_for_stranger(error)
    return f"PowerContext does not answer as it should ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL and the server's log"


def _remedy_for_stranger(error: PowerContextResponseError) -> str:
    """Return what to do where the first answer of all was none of PowerContext's."""
    if str(error) == BROKEN:
        return f"PowerContext does not answer ({error}): check the port in POWERCONTEXT_DEERFLOW_BASE_URL, and whether it is an https port, which some servers do not say; then the server's log"
    return f"something else than PowerContext answers ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way"


def _remedy_for_status(error: PowerContextStatusError) -> str:
    status = error.status_code
    if str(error).endswith(BY_HTTPS):
        return f"something else than PowerContext answers ({error}): POWERCONTEXT_DEERFLOW_BASE_URL has to begin with https://, and have the port for that"
    if status == 404:
        return "this server does not know PowerContext's API: it is older than 1.2, or POWERCONTEXT_DEERFLOW_BASE_URL leads elsewhere, for example by a path such as /v1"
    if status in (502, 503, 504):
        return f"a proxy on the way does not reach PowerContext ({error}): check that it runs, and the proxy's log"
    if status == 429:
        return f"a proxy on the way limits the requests ({error}): raise its limit for this Gateway"
    if status >= 500:
        return f"PowerContext fails inside ({error}): look into its log"
    if error.code is not None:
        return f"PowerContext refuses the question ({error}, {error.code}): check that its version is 1.2 or later, and its log"
    if status == 400:
        return f"something else than PowerContext answers ({error}): check the port in POWERCONTEXT_DEERFLOW_BASE_URL, and whether it has to begin with https://"
    if error.operation != "get_readiness":
        return f"something else than PowerContext answers a part of the questions ({error}): let the proxy on the way pass GET and POST to every path, with the Authorization header"
    return f"something else than PowerContext answers ({error}): check POWERCONTEXT_DEERFLOW_BASE_URL, and any proxy or sign-in page on the way"
