"""Stand-in for DeerFlow's memory contract and factory, October 2026. See ``backend/devhost/README.md`` for what it leaves out."""

from __future__ import annotations

import importlib
import inspect
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Mode = Literal["middleware", "tool"]


class MemoryManagerError(RuntimeError):
    """A backend's failure."""


class MemoryConflictError(MemoryManagerError):
    """A write lost against another one."""


class MemoryCorruptionError(MemoryManagerError):
    """Stored memory cannot be read."""


class MemoryReadError(MemoryManagerError):
    """A required read failed: the run stops."""


class MemoryCallbacks:
    """The host's observers of a backend's model calls."""


class MemoryManager(BaseModel):
    """What every backend is to the host."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    supports_search: ClassVar[bool] = False
    requires_passive_writes_in_tool_mode: ClassVar[bool] = False

    backend_config: dict[str, Any] = Field(default_factory=dict)
    mode: Mode = "middleware"
    callbacks: MemoryCallbacks | None = None

    @field_validator("backend_config", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    @model_validator(mode="after")
    def _check_search(self) -> MemoryManager:
        searches = type(self).search is not MemoryManager.search
        if self.supports_search is not searches:
            raise ValueError("supports_search must say whether search() is implemented")
        if self.mode == "tool" and not searches:
            raise ValueError("mode 'tool' needs a backend that implements search()")
        return self

    @classmethod
    @abstractmethod
    def from_config(cls, backend_config: dict[str, Any], *, mode: Mode = "middleware", **host_hooks: Any) -> MemoryManager: ...

    @abstractmethod
    def add(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None: ...

    @abstractmethod
    def get_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str: ...

    @classmethod
    def read_failures_are_fatal_for_config(cls, backend_config: dict[str, Any]) -> bool:
        policy = backend_config.get("failure_policy")
        return isinstance(policy, Mapping) and policy.get("read") == "fail_closed"

    @property
    def read_failures_are_fatal(self) -> bool:
        return type(self).read_failures_are_fatal_for_config(self.backend_config)

    def add_nowait(self, thread_id: str, messages: list[Any], *, agent_name: str | None = None, user_id: str | None = None) -> None:
        self.add(thread_id, messages, agent_name=agent_name, user_id=user_id)

    async def aadd(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        self.add(thread_id, messages, agent_name=agent_name, user_id=user_id, trace_id=trace_id)

    async def aget_context(
        self,
        user_id: str | None,
        *,
        agent_name: str | None = None,
        thread_id: str | None = None,
        query: str | None = None,
    ) -> str:
        return self.get_context(user_id, agent_name=agent_name, thread_id=thread_id, **context_query_kwargs(self.get_context, query))

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        return self._unsupported("search")

    async def asearch(self, query: str, top_k: int = 5, *, user_id: str | None = None, agent_name: str | None = None, category: str | None = None) -> list[dict[str, Any]]:
        return self.search(query, top_k, user_id=user_id, agent_name=agent_name, category=category)

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        return self._unsupported("get_memory")

    def delete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> None:
        self._unsupported("delete_memory")

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        return self._unsupported("clear_memory")

    def import_memory(self, memory_data: dict[str, Any], *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        return self._unsupported("import_memory")

    def export_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        return self._unsupported("export_memory")

    def reload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        return self._unsupported("reload_memory")

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        return self._unsupported("create_fact")

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
        return self._unsupported("update_fact")

    def delete_fact(self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        return self._unsupported("delete_fact")

    def _unsupported(self, operation: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not support {operation}")

    def warm(self) -> bool | None:
        return None

    def shutdown_flush(self, timeout: float) -> bool:
        return True

    def close(self) -> None:
        return None


def context_query_kwargs(get_context: Callable[..., Any], query: str | None) -> dict[str, str]:
    """Return the keyword for ``query`` if there is one to pass and ``get_context`` can take it."""
    if query is None:
        return {}
    parameters = inspect.signature(get_context).parameters
    takes = "query" in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return {"query": query} if takes else {}


_lock = threading.Lock()
_manager: MemoryManager | None = None


def read_config() -> dict[str, Any]:
    """Return the config.yaml that ``DEER_FLOW_CONFIG_PATH`` names, or the one in this folder."""
    import yaml

    return dict(yaml.safe_load(Path(os.environ.get("DEER_FLOW_CONFIG_PATH", "config.yaml")).read_text(encoding="utf-8")))


def memory_section() -> dict[str, Any]:
    """Return its ``memory:``."""
    return dict(read_config()["memory"])


def get_memory_manager() -> MemoryManager:
    """Return the process's manager, built by the first call. A failure to build it is not remembered."""
    global _manager
    with _lock:
        if _manager is None:
            section = memory_section()
            module = importlib.import_module(f"deerflow.agents.memory.backends.{section['manager_class']}")
            backend_config = dict(section.get("backend_config") or {})
            backend_config["storage_path"] = str(Path(backend_config.get("storage_path") or ".deer-flow").resolve())
            hooks = {
                "callbacks": MemoryCallbacks(),
                "should_keep_hidden_message": lambda _additional_kwargs: False,
                "trace_context_manager": None,
                "host_llm_factory": lambda: None,
                "extraction_callback": lambda _payload: None,
                "judge": None,
            }
            built: MemoryManager = module.MANAGER_CLASS.from_config(backend_config, mode=section.get("mode", "middleware"), **hooks)
            _manager = built
        return _manager


def reset_memory_manager() -> None:
    """Forget the manager, so that the next call builds one."""
    global _manager
    with _lock:
        _manager = None
