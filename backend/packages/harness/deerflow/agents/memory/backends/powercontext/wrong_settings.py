"""What DeerFlow gets instead of the manager where the settings are wrong: memory that says so, and is none.

DeerFlow builds its memory manager again for every run until that succeeds, so an error from it would end the runs of
everybody on the Gateway. This manager is built once, says once at ERROR what is wrong, and makes no request for
anybody. Only with ``failure_policy: {read: fail_closed}`` do the owner's runs stop, as the operator wants where
memory cannot be read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, NoReturn

from pydantic import ConfigDict, PrivateAttr

from .errors import PowerContextConfigurationError
from .host import MemoryManager, ReadError
from .settings.identifiers import is_owner_id
from .settings.people import is_usable_user_id

logger = logging.getLogger(__name__)


class UnconfiguredMemoryManager(MemoryManager):
    """No memory for anybody.

    Every method of the contract that could read or write memory finds none and sends nothing.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    _stops: Callable[[object], bool] = PrivateAttr()

    @classmethod
    def because_of(cls, error: PowerContextConfigurationError, *, reads_are_fatal: bool) -> UnconfiguredMemoryManager:
        """Build it, and log ``error``, which names the settings and no value.

        Args:
            error: What is wrong.
            reads_are_fatal: Whether the owner's run stops where memory cannot be read. While it is not known who the
                owner is, every signed-in user may be.
        """
        owner = os.environ.get("POWERCONTEXT_DEERFLOW_OWNER_USER_ID", "")
        # there is nothing to search, so the contract has no other mode for it
        manager = cls(backend_config={}, mode="middleware")
        if not reads_are_fatal:
            manager._stops = lambda user_id: False
        elif is_owner_id(owner) and "POWERCONTEXT_DEERFLOW_BINDINGS_FILE" not in os.environ:
            manager._stops = lambda user_id: user_id == owner
        else:
            manager._stops = is_usable_user_id
        logger.error(
            "%s\nUntil then %s.",
            error,
            "runs stop that need memory" if reads_are_fatal else "there is no memory, and runs go on without it",
        )
        return manager

    @classmethod
    def from_config(cls, backend_config: dict[str, Any], **host_hooks: Any) -> NoReturn:
        """Refuse: only wrong settings make one, through ``because_of``."""
        raise PowerContextConfigurationError("memory.manager_class must be powercontext")

    def get_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str:
        """Return ``""``, for anybody.

        Raises:
            MemoryReadError: It is the owner's run, and ``failure_policy.read`` is ``fail_closed``, or wrong.
        """
        if self._stops(user_id):
            raise ReadError("PowerContext memory is not configured")
        return ""

    async def aget_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str:
        """Do the same."""
        return self.get_context(user_id)

    def add(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Do nothing."""

    async def aadd(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Do nothing."""

    def warm(self) -> None:
        """Do nothing: the log has it."""
