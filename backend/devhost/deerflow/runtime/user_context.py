"""Stand-in for DeerFlow's identity resolver: the last two of its five sources, and the fallback that makes a missing identity ``default``."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

DEFAULT_USER_ID = "default"

current_user_id: ContextVar[str | None] = ContextVar("current_user_id", default=None)


def resolve_runtime_user_id(runtime: Any) -> str:
    """Return the caller's id: the run's, else the request's, else ``default``."""
    context = getattr(runtime, "context", None)
    if isinstance(context, Mapping) and context.get("user_id"):
        return str(context["user_id"])
    return current_user_id.get() or DEFAULT_USER_ID
