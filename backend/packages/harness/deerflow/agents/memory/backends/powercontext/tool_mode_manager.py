"""The manager for ``memory.mode: tool``: DeerFlow's own memory tools and its memory page on a Scope."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import PrivateAttr

from .management.store import FactStore
from .manager import PowerContextMemoryManager


class PowerContextToolMemoryManager(PowerContextMemoryManager):
    """Adds search, facts and the memory document to recall.

    ``clear_memory`` and ``import_memory`` keep the contract's ``NotImplementedError``: other tools share a Scope, and
    one click must not empty or fill it. ``agent_name`` selects nothing: all of a person's agents share the Scope.
    """

    supports_search: ClassVar[bool] = True

    _facts: FactStore = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Wire what the mode adds."""
        super().model_post_init(context)
        self._facts = FactStore(self._settings)

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return up to ``top_k`` of the person's memories near ``query``, the best first, as facts.

        Raises:
            MemoryManagerError: The server could not be asked.
        """
        return self._facts.search(self._settings.people.binding_of(user_id), query, top_k, category)

    async def asearch(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """Do the same as ``search`` without blocking the event loop."""
        from asyncio import to_thread  # asyncio costs 12 ms to import, and who calls this has it

        return await to_thread(self.search, query, top_k, user_id=user_id, agent_name=agent_name, category=category)

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Return the person's memories as DeerFlow's document; an empty one for anybody without a binding.

        Raises:
            MemoryManagerError: The server could not be asked.
        """
        return self._facts.document(self._settings.people.binding_of(user_id))

    def export_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Do the same as ``get_memory``."""
        return self.get_memory(user_id=user_id)

    def reload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Do the same as ``get_memory``: nothing is cached."""
        return self.get_memory(user_id=user_id)

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """Save a memory whose kind is ``category``; PowerContext keeps no confidence.

        See ``FactStore.create`` for the errors.
        """
        return self._facts.create(self._settings.people.binding_of(user_id), content, category)

    def update_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Correct a memory. See ``FactStore.update`` for the errors."""
        return self._facts.update(self._settings.people.binding_of(user_id), fact_id, content, category)

    def delete_fact(self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        """Forget a memory. See ``FactStore.delete`` for the errors."""
        return self._facts.delete(self._settings.people.binding_of(user_id), fact_id)
