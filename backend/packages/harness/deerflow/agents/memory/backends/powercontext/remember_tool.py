"""The model-facing tools, on DeerFlow's extension contract (plugin tools, API 0.2.2 and later).

Enabled by ``plugins: [{use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"}]``; the path is that
of the first of them, ``remember``, and stays. ``POWERCONTEXT_DEERFLOW_TOOLS`` says which there are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from .deadline import Deadline
from .diagnostics import describe
from .errors import PowerContextBusyError, PowerContextCancelledError, PowerContextConfigurationError
from .sanitizing import result_without_host_tags, without_host_tags
from .settings.loading import PowerContextSettings, load_settings
from .settings.people import Binding
from .tools import changing
from .tools.descriptions import DESCRIPTIONS, SCHEMAS
from .tools.offered import Payload, Tool, offered_tools
from .tools.outcomes import Unknown
from .tools.tool_calls import CALL_SECONDS, run

logger = logging.getLogger(__name__)


def install(registry: Any, config: Mapping[str, Any]) -> None:
    """Register the tools with DeerFlow. No network.

    Args:
        registry: The host's extension registry.
        config: The ``config`` of the plugin's YAML entry; it must be empty.

    Raises:
        PowerContextConfigurationError: The environment is wrong, ``config`` is not empty, or this DeerFlow has no
            plugin tools. The host logs it and starts without the tools, or not at all if the entry says ``required:
            true``.
    """
    if config:
        raise PowerContextConfigurationError(
            "plugins[].config of the PowerContext tool must be empty; its settings are the POWERCONTEXT_DEERFLOW_ variables of the Gateway's environment",
        )
    settings = load_settings()
    register = getattr(registry, "plugin", None)
    contribution = _contribution(settings) if register is not None else None
    if register is None or contribution is None or register(contribution) is not True:
        raise PowerContextConfigurationError(
            "This DeerFlow has no plugin tools, so there is no `remember`: update it (extension API 0.2.2 or later) or remove the entry from `plugins`",
        )


def _contribution(settings: PowerContextSettings) -> Any:
    """Return the plugin, or ``None`` on a host that has no such thing."""
    try:
        from deerflow_extension_api.plugins import ModelTool, PluginContribution
    except ImportError:
        return None
    return PluginContribution(
        namespace="powercontext",
        title="PowerContext memory",
        description="Saves, looks up, corrects and forgets what the user asks for, in PowerContext.",
        enabled=True,
        tools=tuple(
            ModelTool(
                name=name,
                description=DESCRIPTIONS[name],
                input_schema=SCHEMAS[name],
                handler=_handler(name, tool, settings),
            )
            for name, tool in offered_tools(settings).items()
        ),
    )


def _handler(name: str, tool: Tool, settings: PowerContextSettings) -> Any:
    async def handle(payload: Payload, context: Any) -> dict[str, Any]:
        told: dict[str, Any] | str
        binding = settings.people.binding_of(getattr(getattr(context, "principal", None), "user_id", None))
        if binding is None:
            told = f"{_NOT_DONE[name]}: this memory belongs to another user."
        # it may stand for something we would not do, such as another Scope
        elif payload.keys() - SCHEMAS[name]["properties"].keys():
            told = f"{_NOT_DONE[name]}: give {' and '.join(SCHEMAS[name]['properties'])}, and nothing else."
        else:
            told = tool.tell(await _call(name, tool, binding, payload), payload)
        if isinstance(told, str):
            from langchain_core.tools import ToolException

            raise ToolException(without_host_tags(told))
        return dict(result_without_host_tags(told))

    return handle


async def _call(name: str, tool: Tool, binding: Binding, payload: Payload) -> Any:
    """Return what came of a call, within ``CALL_SECONDS`` and on a thread of ours."""
    deadline = Deadline.after(CALL_SECONDS)
    try:
        outcome = await run(
            lambda: tool.call(binding, payload, deadline),
            deadline=deadline,
            abandoned=lambda outcome: _log_abandoned(name, outcome),
        )
    except PowerContextBusyError as error:
        outcome = tool.refuse("busy", error)
    except PowerContextCancelledError as error:
        outcome = tool.refuse("shutdown", error)
    _log(name, outcome, CALL_SECONDS - deadline.left(), binding)
    return outcome


_NOT_DONE: Final = {
    "remember": "Not saved",
    "recall": "Not looked up",
    "correct": "Not corrected",
    "forget": "Not forgotten",
}
_CALLED: Final = {"remember": "save", "recall": "look-up", "correct": "correction", "forget": "forgetting"}


def _log(name: str, outcome: Any, elapsed_seconds: float, binding: Binding) -> None:
    error = getattr(outcome, "error", None)
    if error is not None:
        what = "unknown" if isinstance(outcome, Unknown | changing.Unknown) else _NOT_DONE[name].lower()
        logger.warning("PowerContext %s: %s. %s.", _CALLED[name], what, describe(error, elapsed_seconds, binding))
    else:
        logger.debug("PowerContext %s: %s, %.0f ms.", _CALLED[name], type(outcome).__name__, elapsed_seconds * 1000)


def _log_abandoned(name: str, outcome: Any) -> None:
    """Log what a call came to that nobody waits for any more, because its run was cancelled or the process ends."""
    if isinstance(outcome, Unknown | changing.Unknown):
        logger.warning("A %s was cancelled after its write had begun; whether it is stored is unknown.", _CALLED[name])
    else:
        logger.debug("PowerContext %s, cancelled: %s.", _CALLED[name], type(outcome).__name__)
