"""What is to be said of the settings, and of the server they lead to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from ..api.client import PowerContextClient
from ..api.requests import is_unknown_route
from ..check_people import check_everybody
from ..deadline import Deadline
from ..diagnostics import Finding, remedy_for, settings_warnings, sign_in_problem
from ..errors import PowerContextConfigurationError, PowerContextError
from ..settings.loading import PowerContextSettings, load_settings
from ..settings.people import Binding
from .capture_checks import check_extraction

LIMIT_SECONDS: Final = 30.0
"""Of all questions about several people."""


def check_environment() -> tuple[PowerContextSettings | None, list[Finding]]:
    """Return the settings, if they are good, and what is to say of the environment."""
    findings = []
    if problem := sign_in_problem():
        findings.append(Finding("failed", "sign-in", problem))
    try:
        settings = load_settings()
    except PowerContextConfigurationError as error:
        return None, [
            *findings,
            *(Finding("failed", "settings", line.removeprefix("- ")) for line in str(error).splitlines()[1:]),
        ]
    findings.append(Finding("ok", "settings", "complete"))
    findings += [Finding("warning", "settings", warning) for warning in settings_warnings(settings, shlex.quote(settings.bindings_file or ""))]
    return settings, findings


def check_service(settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield what the server says, question by question, until one fails, and of every binding whether it is good."""
    client = PowerContextClient(settings)
    bindings = settings.people.bindings
    seconds = 3 * settings.recall_timeout_seconds if len(bindings) == 1 else LIMIT_SECONDS
    try:
        findings, good = check_everybody(
            client,
            bindings,
            Deadline.after(seconds),
            each_seconds=settings.recall_timeout_seconds,
        )
        yield from findings
        if good is not None:
            yield from check_recall(client, good, settings)
            if settings.capture != "off":
                yield from check_extraction(client, good, settings.recall_timeout_seconds)
    finally:
        client.close()


def check_recall(client: PowerContextClient, binding: Binding, settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield whether recalls find what they can, and how long the server takes for one."""
    limit = settings.recall_timeout_seconds
    try:
        yield check_query(client, binding, settings)
        deadline = Deadline.after(limit)
        client.prepare_context(binding, "powercontext doctor", deadline=deadline)
        took = f"{(limit - deadline.left()) * 1000:.0f} ms of {limit * 1000:.0f} ms"
        slow = deadline.left() < limit / 2
        yield Finding(
            "warning" if slow else "ok",
            "recall",
            f"{took}: a busier moment may be over the limit; look into the server's load" if slow else took,
        )
    except PowerContextError as error:
        yield Finding("failed", "server", remedy_for(error))


def check_query(client: PowerContextClient, binding: Binding, settings: PowerContextSettings) -> Finding:
    """Return whether recalls find what they can: search first, and choose."""
    if settings.recall_query == "full":
        return Finding(
            "warning",
            "query",
            "a whole request finds little, on servers that search vectors, too; remove POWERCONTEXT_DEERFLOW_RECALL_QUERY",
        )
    try:
        client.search_atomic_memory(
            binding,
            "powercontext doctor",
            deadline=Deadline.after(settings.recall_timeout_seconds / 2),
        )
    except PowerContextError as error:
        if not is_unknown_route(error):
            return Finding("warning", "query", f"recalls cannot search first, so they find less: {remedy_for(error)}")
        if _knows_the_search(client, binding, settings):
            remedy = "let the proxy on the way pass POST to every path below /v1/scopes"
            return Finding(
                "warning",
                "query",
                f"recalls cannot search first, so they find less: this server knows the search, but something on the way answers it ({error}): {remedy}",
            )
        return Finding(
            "ok",
            "query",
            "focused, in one request: a server before 1.3 does not know the search, and recalls find less",
        )
    return Finding("ok", "query", "focused: search, choose, prepare")


def _knows_the_search(client: PowerContextClient, binding: Binding, settings: PowerContextSettings) -> bool:
    """Tell whether the server is a 1.3 or later, as far as it says so to this token."""
    try:
        return client.get_server_info(binding, deadline=Deadline.after(settings.recall_timeout_seconds / 2)) is not None
    except PowerContextError:
        return False
