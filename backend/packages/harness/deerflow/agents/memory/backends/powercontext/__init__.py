"""PowerContext as DeerFlow's memory: ``memory.manager_class: powercontext``."""

from .manager import PowerContextMemoryManager

MANAGER_CLASS = PowerContextMemoryManager

__all__ = ["MANAGER_CLASS", "PowerContextMemoryManager"]
