"""What is to be said of the settings, and of the server they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..check_people import check_everybody
from ..client import PowerContextClient
from ..config import PowerContextSettings, load_settings
from ..deadline import Deadline
from ..diagnostics import Finding, remedy_for, settings_warnings, sign_in_problem
from ..errors import PowerContextAuthenticationError, PowerContextConfigurationError, PowerContextError
from ..people import Binding

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
        return None, [*findings, *(Finding("failed", "settings", line.removeprefix("- ")) for line in str(error).splitlines()[1:])]
    findings.append(Finding("ok", "settings", "complete"))
    findings += [Finding("warning", "settings", warning) for warning in settings_warnings(settings)]
    return settings, findings


def check_service(settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield what the server says, question by question, until one fails, and of every binding whether it is good."""
    client = PowerContextClient(settings)
    bindings = settings.people.bindings
    seconds = 3 * settings.recall_timeout_seconds if len(bindings) == 1 else LIMIT_SECONDS
    try:
        findings, good = check_everybody(client, bindings, Deadline.after(seconds), each_seconds=settings.recall_timeout_seconds)
        yield from findings
        if good is not None:
            yield from check_recall(client, good, settings)
    finally:
        client.close()


def check_recall(client: PowerContextClient, binding: Binding, settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield whether the query fits how the server searches, and how long a recall takes."""
    limit = settings.recall_timeout_seconds
    try:
        yield from check_search(client, binding, settings)
        deadline = Deadline.after(limit)
        client.prepare_context(binding, "powercontext doctor", deadline=deadline)
        took = f"{(limit - deadline.left()) * 1000:.0f} ms of {limit * 1000:.0f} ms"
        slow = deadline.left() < limit / 2
        yield Finding("warning" if slow else "ok", "recall", f"{took}: a busier moment may be over the limit; look into the server's load" if slow else took)
    except PowerContextError as error:
        yield Finding("failed", "server", remedy_for(error))


def check_search(client: PowerContextClient, binding: Binding, settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield whether the query fits how the server searches, if the token is told."""
    try:
        modes = set(client.get_capabilities(binding, deadline=Deadline.after(settings.recall_timeout_seconds)).search_modes)
    except PowerContextAuthenticationError as error:
        if error.status_code != 403:
            raise
        return
    if {"vector", "hybrid"} & modes and settings.recall_query == "focused":
        yield Finding("warning", "query", "this server searches vectors, which work better on whole requests; set POWERCONTEXT_DEERFLOW_RECALL_QUERY=full")
    elif not {"vector", "hybrid"} & modes and settings.recall_query == "full":
        yield Finding("warning", "query", "this server searches words, and a whole request hides them; remove POWERCONTEXT_DEERFLOW_RECALL_QUERY")
    else:
        yield Finding("ok", "query", settings.recall_query)
