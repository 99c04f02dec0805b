"""Who a tool call is made for, as the host found out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExtensionPrincipal:
    """A caller; ``user_id`` is never absent: a missing identity is ``default``."""

    user_id: str
    is_admin: bool = False
    is_internal: bool = False
    roles: tuple[str, ...] = ()
