"""Compares the bindings with DeerFlow's own user table, where that is SQLite.

Users are told by number, in the order in which they signed up.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..diagnostics import Finding, positions, told
from ..errors import PowerContextConfigurationError
from ..settings.loading import PowerContextSettings
from ..settings.people import People
from .config_file import resolved

_SECONDS = 2.0
_LIST = "'SELECT id, email FROM users'"


def check_users(config: Mapping[str, Any], config_folder: Path, settings: PowerContextSettings) -> Iterator[Finding]:
    """Yield whether DeerFlow knows whoever has a binding, and of several bindings which of its users have none.

    Args:
        config: DeerFlow's config.yaml.
        config_folder: Where that is: a relative ``sqlite_dir`` is looked for from this process's folder, as DeerFlow
            does, and from the checkout's ``backend``, where DeerFlow is started.
        settings: The settings.
    """
    database = _database(config, config_folder)
    if database is None:
        return
    show = f"sqlite3 {shlex.quote(str(database.resolve()))} {_LIST}"
    users = _users(database)
    if users is None:
        yield Finding(
            "warning",
            "users",
            f"DeerFlow's user table cannot be read, so nobody's id was looked up; this tells why: {show}",
        )
        return
    if not users:
        yield Finding(
            "failed",
            "users",
            f"nobody has signed up in DeerFlow yet: sign up, open /api/v1/auth/me there, and put your id into {settings.named_in}",
        )
        return
    if unknown := settings.people.missing_from(users):
        which = f" of {positions(unknown)}" if settings.bindings_file else ""
        yield Finding(
            "failed",
            "users",
            f"the id{which} in {settings.named_in} is not in DeerFlow's user table; see it there: {show}",
        )
    if settings.bindings_file is not None:
        yield _without_a_binding(settings.people, users)
    elif not unknown:
        yield Finding("ok", "users", "the owner is in DeerFlow's user table")


def _without_a_binding(people: People, users: Sequence[str]) -> Finding:
    without = people.without_a_binding(users)
    rest = f"; user {told(without)} (in the order in which they signed up) {'has' if len(without) == 1 else 'have'} none" if without else ""
    return Finding("ok", "users", f"{len(users) - len(without)} of DeerFlow's {len(users)} users have a binding{rest}")


def _database(config: Mapping[str, Any], config_folder: Path) -> Path | None:
    try:
        section = resolved(config.get("database"))
    except PowerContextConfigurationError:
        return None
    section = section if isinstance(section, Mapping) else {}
    folder = section.get("sqlite_dir", ".deer-flow/data")
    if section.get("backend", "sqlite") != "sqlite" or not isinstance(folder, str):
        return None
    places = (Path.cwd(), config_folder / "backend", config_folder)
    return next((file for place in places if (file := place / folder / "deerflow.db").is_file()), None)


def _users(database: Path) -> list[str] | None:
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(database.resolve()))}?mode=ro", uri=True, timeout=_SECONDS),
        ) as connection:
            return [str(row[0]) for row in connection.execute("SELECT id FROM users ORDER BY created_at, id")]
    except sqlite3.Error:
        return None
