"""Stand-in for the four memory tools that a DeerFlow with ``memory.mode: tool`` gives a model, and for the list on its memory page."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from deerflow.agents.memory.manager import MemoryManager, get_memory_manager, memory_section
from deerflow.runtime.user_context import resolve_runtime_user_id

logger = logging.getLogger(__name__)

Tool = Callable[..., dict[str, Any]]


def memory_tools() -> dict[str, Tool]:
    """Return the tools that the model is offered, by name: none unless memory is on and in tool mode."""
    section = memory_section()
    if not section.get("enabled", True) or section.get("mode") != "tool":
        return {}
    return {"memory_search": _search, "memory_add": _add, "memory_update": _update, "memory_delete": _delete}


async def call_memory_tool(tool: Tool, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Call ``tool`` as the model would, in a run with this ``context``, and return the JSON it gets back: a failure, too, is an answer."""
    return await asyncio.to_thread(_answer, tool, arguments, context)


async def memory_page(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that the memory page shows to who asks.

    Raises:
        MemoryManagerError: It cannot be read; the page shows an error.
    """
    return await asyncio.to_thread(get_memory_manager().get_memory, user_id=_user_of(context))


def _user_of(context: Mapping[str, Any]) -> str:
    return resolve_runtime_user_id(SimpleNamespace(context=context))


def _answer(tool: Tool, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    whose = {"user_id": _user_of(context), "agent_name": context.get("agent_name")}
    try:
        result = tool(get_memory_manager(), whose, **arguments)
    except Exception as error:
        gone = isinstance(error, KeyError) and "fact_id" in arguments
        if not isinstance(error, KeyError | ValueError):
            logger.warning("A memory tool failed: %s", type(error).__name__)  # DeerFlow logs the traceback
        result = {"error": f"Fact not found: {arguments['fact_id']}" if gone else str(error)}
    return json.dumps(result, ensure_ascii=False)


def _search(manager: MemoryManager, whose: dict[str, Any], query: str, category: str | None = None, limit: int = 10) -> dict[str, Any]:
    results = manager.search(query, top_k=limit, category=category, **whose)
    return {"results": results, "count": len(results)}


def _add(manager: MemoryManager, whose: dict[str, Any], content: str, category: str = "context", confidence: float = 0.7) -> dict[str, Any]:
    text = content.strip()
    if not text:
        raise ValueError("empty content")
    if text.casefold() in [str(fact["content"]).strip().casefold() for fact in manager.get_memory(**whose)["facts"]]:
        raise ValueError("Duplicate fact")
    _, fact_id = manager.create_fact(text, category=category, confidence=confidence, **whose)
    if fact_id is None:
        raise ValueError("Not stored: there are as many facts as memory.max_facts allows")
    return {"fact_id": fact_id, "status": "added"}


def _update(
    manager: MemoryManager,
    whose: dict[str, Any],
    fact_id: str,
    content: str | None = None,
    category: str | None = None,
    confidence: float | None = None,
) -> dict[str, Any]:
    manager.update_fact(fact_id, content=content, category=category, confidence=confidence, **whose)
    return {"fact_id": fact_id, "status": "updated"}


def _delete(manager: MemoryManager, whose: dict[str, Any], fact_id: str) -> dict[str, Any]:
    manager.delete_fact(fact_id, **whose)
    return {"fact_id": fact_id, "status": "deleted"}
