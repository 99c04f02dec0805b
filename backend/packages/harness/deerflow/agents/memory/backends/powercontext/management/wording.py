"""What DeerFlow's memory tools and page are told, beside what the model's own tools say. No sentence holds content."""

from __future__ import annotations

import logging
from typing import Final

from ..diagnostics import describe
from ..errors import PowerContextError

logger = logging.getLogger(__name__)

NOBODY: Final = "Not saved: no memory is set up for this user."
NOT_A_CATEGORY: Final = "Not saved: the category must have 1 to 128 characters."
GONE: Final = "There is no such memory."
NO_NEW_TEXT: Final = "Not changed: give the whole new text."
CHANGED_MEANWHILE: Final = "Not changed: the memory was changed meanwhile; look it up again."
BUSY: Final = "Nothing was done: too many calls wait for the memory server; try again later."
FAILED: Final = "Nothing was done: the memory server did not answer as it should; try again later."
UNKNOWN_CHANGE: Final = "It is not known whether this was changed. Tell the user so, and look it up before trying again."

GONE_REASONS: Final = frozenset(
    {
        "no_such_memory",
        "is_forgotten",
        "is_set_aside",
        "not_a_citation",
        "several_citations",
        "another_family",
        "another_scope",
    },
)

SERVER_REASONS: Final = frozenset(
    {"token", "scope", "busy", "shutdown", "unreachable", "overloaded", "refused", "contended", "failed"},
)
"""Reasons that are the server's or the operator's, not the text's."""


def log_failure(error: PowerContextError, elapsed_seconds: float) -> None:
    """Log what the server did, for the operator."""
    logger.warning("PowerContext memory, asked by DeerFlow's tools or page: %s.", describe(error, elapsed_seconds))
