"""What DeerFlow finds under ``manager_class: powercontext``: the manager of the mode it is set to."""

from __future__ import annotations

from typing import Any, Literal

from .manager import PowerContextMemoryManager
from .wrong_settings import UnconfiguredMemoryManager


class PowerContextMemory(PowerContextMemoryManager):
    """Builds the manager.

    The contract wants one to have ``search`` exactly if it says so, so each mode has a class of its own.
    """

    @classmethod
    def from_config(
        cls,
        backend_config: dict[str, Any] | None,
        *,
        mode: Literal["middleware", "tool"] = "middleware",
        **host_hooks: Any,
    ) -> PowerContextMemoryManager | UnconfiguredMemoryManager:
        """Build the manager of ``mode``. See ``PowerContextMemoryManager.from_config``."""
        if mode == "tool":
            # DeerFlow imports every backend at start-up, and most have another mode
            from .tool_mode_manager import PowerContextToolMemoryManager

            return PowerContextToolMemoryManager.from_config(backend_config, mode=mode, **host_hooks)
        return PowerContextMemoryManager.from_config(backend_config, mode=mode, **host_hooks)
