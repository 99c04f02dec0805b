"""What this backend needs of DeerFlow: its memory contract, and which version of it is there.

The only file that imports DeerFlow.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from deerflow.agents.memory import manager as contract

MemoryManager = contract.MemoryManager

# DeerFlow raises this one through to the run since September 2026; hosts before know only its base class.
ReadError: type[Exception] = getattr(contract, "MemoryReadError", contract.MemoryManagerError)

ConflictError: type[Exception] = contract.MemoryConflictError
ManagerError: type[Exception] = contract.MemoryManagerError


class MemoryUnavailableError(contract.MemoryManagerError, OSError):
    """The memory server did not do it, and said so or was never asked.

    An ``OSError`` too: DeerFlow's page knows what to say to that.
    """


NO_QUERY: Final = "this DeerFlow forwards no query, so recall finds nothing; update it (September 2026 or later), or set memory.mode: tool"


def host_forwards_query() -> bool:
    """Tell whether this DeerFlow hands the user's request to the backend, as it does since September 2026."""
    return hasattr(contract, "context_query_kwargs")


def host_has_plugin_tools() -> bool:
    """Tell whether a plugin of this DeerFlow can give the model tools, as it can since extension API 0.2.2."""
    return find_spec("deerflow_extension_api") is not None and find_spec("deerflow_extension_api.plugins") is not None
