"""Asks the server about every binding, a few at a time, and sums up.

Positions name them; ids and tokens stay out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .deadline import Deadline
from .diagnostics import Finding, check_server, positions
from .errors import (
    PowerContextAuthenticationError,
    PowerContextCancelledError,
    PowerContextConnectionError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextStatusError,
    PowerContextTimeoutError,
)

if TYPE_CHECKING:
    from .api.client import PowerContextClient
    from .settings.people import Binding

AT_A_TIME: Final = 4
MAX_ASKED_AT_START: Final = 100
"""Of so many people a start asks; the doctor asks of all."""
PEOPLES_SHARE: Final = 0.8
"""So much of the time is for the questions about several people; the rest is for those about the server."""


def check_everybody(
    client: PowerContextClient,
    bindings: Sequence[Binding],
    deadline: Deadline,
    *,
    each_seconds: float,
) -> tuple[list[Finding], Binding | None]:
    """Ask whether the server has what ``bindings`` need. Nothing is written.

    Args:
        client: The client to ask through.
        bindings: Whom to ask about. Of one person it is said what to correct; of several, who has which problem.
        deadline: Of all questions together.
        each_seconds: The limit of one of them.

    Returns:
        What is to be said, and a binding that is good, if there is one.
    """
    [first, *others] = bindings
    if others and _answers(client, deadline.within(each_seconds)):
        finding, good = check_people(
            client,
            bindings,
            deadline.within(PEOPLES_SHARE * deadline.left()),
            each_seconds=each_seconds,
        )
        findings = list(check_server(client, good or first, deadline))
        return [*(said for said in findings if good or said.status != "failed"), finding], good
    findings = list(check_server(client, first, deadline))
    return findings, None if any(said.status == "failed" for said in findings) else first


def _answers(client: PowerContextClient, deadline: Deadline) -> bool:
    try:
        return client.get_readiness(deadline=deadline).status != "not_ready"
    except PowerContextError:
        return False


def check_people(
    client: PowerContextClient,
    bindings: Sequence[Binding],
    deadline: Deadline,
    *,
    each_seconds: float,
) -> tuple[Finding, Binding | None]:
    """Ask for the Scope of each of ``bindings``, with its token. Nothing is written.

    Args:
        client: The client to ask through.
        bindings: Whom to ask about.
        deadline: Of all questions together; whoever is not asked by then is counted.
        each_seconds: The limit of one question.

    Returns:
        The sum, and a binding that is good, if there is one.
    """
    from concurrent.futures import ThreadPoolExecutor

    def problem_of(binding: Binding) -> str | None:
        if not deadline.left():
            return _NOT_ASKED
        try:
            client.get_scope(binding, deadline=deadline.within(each_seconds))
        except PowerContextError as error:
            return _NOT_ASKED if isinstance(error, PowerContextCancelledError) else problem(error)
        return None

    pool = ThreadPoolExecutor(min(AT_A_TIME, len(bindings)), thread_name_prefix="powercontext-check")
    try:
        problems = list(pool.map(problem_of, bindings))
    except BaseException:
        deadline.cancel()  # an interrupted check waits for the questions under way and begins none
        raise
    finally:
        pool.shutdown()
    good = next((binding for binding, found in zip(bindings, problems, strict=True) if found is None), None)
    return _sum(bindings, problems), good


_NOT_ASKED: Final = ""


def problem(error: PowerContextError) -> str:
    """Return in a few words what ``error`` says of a binding."""
    if isinstance(error, PowerContextScopeNotFoundError):
        return "no such Scope"
    if isinstance(error, PowerContextAuthenticationError):
        return "the token is refused" if error.status_code == 401 else "the token may not use the Scope, or there is no such Scope"
    if isinstance(error, PowerContextConnectionError):
        return "PowerContext cannot be reached"
    if isinstance(error, PowerContextTimeoutError):
        return "no answer in time"
    return str(error) if isinstance(error, PowerContextStatusError) else "no answer as it should be"


def _sum(bindings: Sequence[Binding], problems: Sequence[str | None]) -> Finding:
    """Return the sum of ``problems``, one for each binding: ``None`` where it is good."""
    count, good = len(bindings), problems.count(None)
    where: dict[str, list[Binding]] = {}
    for binding, found in zip(bindings, problems, strict=True):
        if found:
            where.setdefault(found, []).append(binding)
    parts = ["all are good" if good == count else f"{good} of {count} are good"]
    parts += [f"{positions(bad).capitalize()}: {found}" for found, bad in where.items()]
    missed = problems.count(_NOT_ASKED)
    parts += [f"{missed} {'was' if missed == 1 else 'were'} not asked within the limit"] if missed else []
    parts += ["Correct that in the bindings file"] if where else []
    return Finding("failed" if where else "warning" if missed else "ok", "bindings", ". ".join(parts) + ".")
