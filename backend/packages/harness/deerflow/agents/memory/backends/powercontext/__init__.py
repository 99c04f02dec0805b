"""PowerContext as DeerFlow's memory: ``memory.manager_class: powercontext``."""

from .factory import PowerContextMemory
from .manager import PowerContextMemoryManager

MANAGER_CLASS = PowerContextMemory

__all__ = ["MANAGER_CLASS", "PowerContextMemory", "PowerContextMemoryManager"]
