"""Who may use which Scope, from the command line: ``python -m deerflow.agents.memory.backends.powercontext.bind``.

``add`` a person to the bindings file, with a new Scope where none is named; ``list``; ``remove``. The Gateway reads the
file when it starts, so every change needs a restart. Removing deletes nothing on the server. Exit code 0: done, or
there was nothing to do; 1: refused or failed, and the file is as it was; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Final, NoReturn

from .api.provisioning import check_use, create_scope
from .deadline import Deadline
from .diagnostics import remedy_for
from .errors import (
    PowerContextAuthenticationError,
    PowerContextConfigurationError,
    PowerContextError,
    PowerContextScopeNotFoundError,
    PowerContextTimeoutError,
)
from .settings.bindings_writer import locked, read_entries, write_entries
from .settings.identifiers import OWNER_ID_RULE, SCOPE_ID_RULE, TOKEN_RULE, is_owner_id, is_scope_id, is_token
from .settings.loading import VARIABLES, PowerContextSettings, read_settings
from .settings.people import Entry, People
from .settings.variables import ENVIRONMENT_PREFIX, needs_token
from .transport.exchange import Transport

LIMIT_SECONDS: Final = 30.0
RESTART: Final = "Restart every Gateway process."


def add(options: argparse.Namespace) -> str:
    """Add a person, or give the one who is there a token or a shared Scope; return what was done."""
    _must(is_owner_id(options.user_id), f"the user id {OWNER_ID_RULE}")
    _must(options.scope is None or is_scope_id(options.scope), f"the Scope {SCOPE_ID_RULE}")
    token = None if options.token_file is None else _token_from(options.token_file)
    with locked(options.file):
        entries = read_entries(options.file) if os.path.lexists(options.file) else []
        position = next(
            (number for number, entry in enumerate(entries) if entry.owner_user_id == options.user_id),
            len(entries),
        )
        old = entries[position] if position < len(entries) else None
        _must(
            old is None or options.scope in (None, old.scope_id),
            f"binding {position + 1} is this person's, and has another Scope; remove it first",
        )
        new = Entry(options.user_id, options.scope or "") if old is None else old
        new = replace(new, token=token or new.token, shared=new.shared or options.shared)
        if new == old:
            return f"Binding {position + 1} of {len(entries)} is so already; nothing was changed."
        new = _provided(new, _settings(options.file))
        write_entries(options.file, [*entries[:position], new, *entries[position + 1 :]])
    return f"Binding {position + 1} of {max(len(entries), position + 1)} is {'changed' if old else 'added'}. {RESTART}"


def show(options: argparse.Namespace) -> str:
    """Return the people in the file: ids, and of a token only whether there is one."""
    lines = []
    for position, entry in enumerate(read_entries(options.file), 1):
        facts = ["a token of their own"] if entry.token is not None else []
        facts += ["shared"] if entry.shared else []
        lines.append(f"{position:>5}  {entry.owner_user_id}  {entry.scope_id}  {', '.join(facts)}".rstrip())
    return "\n".join(lines) or "There is nobody in the file."


def remove(options: argparse.Namespace) -> str:
    """Take a person out of the file; the Scope and what is in it stay."""
    with locked(options.file):
        entries = read_entries(options.file)
        rest = [entry for entry in entries if entry.owner_user_id != options.user_id]
        if rest == entries:
            return "This person is not in the file; nothing was changed."
        write_entries(options.file, rest)
    last = "" if rest else " Nobody is left, so there is no memory for anybody until somebody is added."
    return f"The person is removed; {len(rest)} are left. The Scope and its memories stay.{last} {RESTART}"


def _provided(entry: Entry, settings: PowerContextSettings) -> Entry:
    """Return ``entry`` with a Scope that is there and that its token may use."""
    _must(
        entry.token is not None or settings.token is not None or not needs_token(settings.base_url),
        "a token is needed: set POWERCONTEXT_DEERFLOW_TOKEN",
    )
    transport = Transport(settings.endpoint)
    deadline = Deadline.after(LIMIT_SECONDS)
    try:
        created = not entry.scope_id
        if created:
            entry = replace(entry, scope_id=create_scope(transport, settings.token, entry.owner_user_id, deadline))
        [binding] = People([entry], settings.token).bindings
        check_use(transport, binding, deadline, granted_by=settings.token if created else None)
        return entry
    except PowerContextError as error:
        problem = _problem(error)
    finally:
        transport.close()
    raise PowerContextConfigurationError(problem)


def _problem(error: PowerContextError) -> str:
    if isinstance(error, PowerContextAuthenticationError) and error.operation in (
        "create_scope",
        "create_access_binding",
    ):
        return "PowerContext does not let POWERCONTEXT_DEERFLOW_TOKEN create Scopes and grant their use: set it to an administrator's token for this command"
    if isinstance(error, PowerContextScopeNotFoundError):
        return "PowerContext has no such Scope: name one that is there, or none for a new one"
    if isinstance(error, PowerContextAuthenticationError) and error.status_code == 403:
        return "the token may not use this Scope: grant it on the server first (role scope.contributor), or name no Scope"
    if isinstance(error, PowerContextTimeoutError):
        return f"PowerContext does not answer ({error}): run this again, it creates no second Scope"
    return remedy_for(error)


def _settings(path: str) -> PowerContextSettings:
    given = {name: os.environ[variable] for variable, name in VARIABLES.items() if variable in os.environ and name not in ("owner_user_id", "scope_id")}
    settings, faults = read_settings(given | {"bindings_file": path})
    if settings is None:
        raise PowerContextConfigurationError("\n- ".join(["the environment is not that of the Gateway:", *faults]))
    return settings


def _token_from(source: str) -> str:
    problem = "the token's file cannot be read"
    try:
        with nullcontext(sys.stdin) if source == "-" else open(source, encoding="utf-8") as file:
            text = file.read(65536)
    except (OSError, ValueError):
        pass
    else:
        token = text.removesuffix("\n").removesuffix("\r")
        if is_token(token):
            return token
        problem = f"the token {TOKEN_RULE}"
    raise PowerContextConfigurationError(problem)


def _must(holds: bool, problem: str) -> None:
    if not holds:
        raise PowerContextConfigurationError(problem)


class _Parser(argparse.ArgumentParser):
    """Quotes no argument: one that is wrong may be a token."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(
            2,
            "These arguments are wrong; see --help. A token is never one of them: give it with --token-file.\n",
        )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        allow_abbrev=False,
        prog="python -m deerflow.agents.memory.backends.powercontext.bind",
        description="Say which DeerFlow user may use which PowerContext Scope. The Gateway reads the file when it starts.",
    )
    parser.add_argument(
        "--file",
        default=os.environ.get(f"{ENVIRONMENT_PREFIX}BINDINGS_FILE"),
        help="the bindings file; without it, that of POWERCONTEXT_DEERFLOW_BINDINGS_FILE",
    )
    commands = parser.add_subparsers(required=True, metavar="add | list | remove")
    _describe_add(
        commands.add_parser(
            "add",
            allow_abbrev=False,
            help="add a person, with a new Scope if none is named; needs the Gateway's environment",
        ),
    )
    commands.add_parser("list", help="show the people, their Scopes and no token").set_defaults(run=show)
    removing = commands.add_parser("remove", help="remove a person; nothing is deleted on the server")
    removing.add_argument("user_id")
    removing.set_defaults(run=remove)
    return parser


def _describe_add(adding: argparse.ArgumentParser) -> None:
    adding.add_argument("user_id", help="the person's id in DeerFlow's user table")
    adding.add_argument("--scope", metavar="ID", help="an existing Scope")
    adding.add_argument(
        "--shared",
        action="store_true",
        help="others may have the same Scope; all of them have to say so",
    )
    adding.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the person's own token, - for standard input; without it, POWERCONTEXT_DEERFLOW_TOKEN is used",
    )
    adding.set_defaults(run=add)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.file or not os.path.isabs(options.file):
        print(
            "Name the bindings file by its absolute path, with --file or POWERCONTEXT_DEERFLOW_BINDINGS_FILE.",
            file=sys.stderr,
        )
        return 2
    options.file = os.path.realpath(options.file)  # a link stays a link
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an id may have signs that the terminal has not
    run: Callable[[argparse.Namespace], str] = options.run
    try:
        print(run(options))
    except PowerContextConfigurationError as error:
        print(f"Nothing was changed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
