"""Stand-in for the part of a DeerFlow conversation that memory takes part in: what the model is sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from deerflow.agents.memory.manager import (
    MemoryManagerError,
    MemoryReadError,
    context_query_kwargs,
    get_memory_manager,
    memory_section,
)
from deerflow.runtime.user_context import resolve_runtime_user_id

logger = logging.getLogger(__name__)

INJECTION_LIMIT_SECONDS = 5.0
QUERY_LIMIT_CHARACTERS = 1000

Message = dict[str, str]


@dataclass
class Conversation:
    """One conversation; ``context`` is the run's, with ``user_id`` if the Gateway knows who is asking."""

    context: Mapping[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    _started: bool = False

    async def turn(self, text: str) -> list[Message]:
        """Take the user's message and return what goes to the model. Memory is asked for on the first turn only, and stays as it was.

        Raises:
            MemoryReadError: Memory is required and could not be read.
        """
        if not self._started:
            memory = await self._recall(text)
            self._started = True
            if memory.strip():
                self.messages.append({"role": "user", "name": "memory", "content": f"<memory>\n{memory}\n</memory>"})
        self.messages.append({"role": "user", "content": text})
        return list(self.messages)

    async def _recall(self, text: str) -> str:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._get_context, text), INJECTION_LIMIT_SECONDS)
        except TimeoutError:
            if get_memory_manager().read_failures_are_fatal:
                raise MemoryReadError("Required memory context retrieval timed out") from None
            return ""

    def _get_context(self, text: str) -> str:
        section = memory_section()
        if not section.get("enabled", True) or not section.get("injection_enabled", True):
            return ""
        try:
            manager = get_memory_manager()
            query = context_query_kwargs(manager.get_context, text[:QUERY_LIMIT_CHARACTERS])
            return manager.get_context(resolve_runtime_user_id(SimpleNamespace(context=self.context)), agent_name=None, **query)
        except MemoryReadError:
            raise
        except Exception as error:
            logger.exception("Failed to load memory context")
            policy = (section.get("backend_config") or {}).get("failure_policy") or {}
            if isinstance(error, MemoryManagerError) and policy.get("read") == "fail_closed":
                raise
            return ""

    def remember_reply(self, text: str) -> None:
        """Add the model's answer."""
        self.messages.append({"role": "assistant", "content": text})
