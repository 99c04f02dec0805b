"""The model-facing tool ``remember``, on DeerFlow's extension contract (plugin tools, API 0.2.2 and later).

Enabled by ``plugins: [{use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"}]``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from .config import PowerContextSettings, load_settings
from .deadline import Deadline
from .diagnostics import describe
from .errors import PowerContextBusyError, PowerContextCancelledError, PowerContextConfigurationError
from .host_tags import result_without_host_tags
from .people import Binding, People
from .tools.outcomes import KINDS, MAX_TEXT_BYTES, AlreadySaved, NotSaved, Outcome, Saved, Unknown, normalize
from .tools.saving import Saver
from .tools.threads import CALL_SECONDS, run

logger = logging.getLogger(__name__)

# Models say "I'll remember that" without calling, so the first lines are about when to call. Retrieval matches whole words, so the
# rest is about the words: a stored "amounts are cents" is never found by "refund".
DESCRIPTION: Final = """\
Save one memory for the user, so that new conversations and the user's other tools get it back.

When: the user explicitly asks to remember, save, note or not forget something, or says how it is to be from now on, in any language \
("remember ...", "from now on ...", "记住…"). Then call this before you answer; saying that you will remember saves nothing. \
Several facts: one call each. Never call it for what the user did not ask to have saved, and never save a password, token, key or other secret.

text: one sentence that can be understood alone, in the user's language. A later request finds it only by the words they share, so name the \
subject (project, service, person or thing) and put in the ordinary words such a request would use, the general and the special ones: not \
"amounts are integer cents" but "Order service convention: money amounts such as prices, totals and refunds are integer cents". \
Begin what is about the user with "The user". Write out what "it", "this", "here" and "tomorrow" stand for.

Result: `outcome` is all that is known. saved: it is stored. already_saved: it was stored before, nothing was added. unknown: it may or may \
not be stored; say so and do not call again. An error means it is not saved, and why. Report just that, never more."""

# No maxLength: the host would refuse a longer text without saying why, and we say it with both numbers.
INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "description": f"The memory: one self-contained sentence that names its subject. At most {MAX_TEXT_BYTES} bytes of UTF-8.",
        },
        "kind": {
            "type": "string",
            "enum": list(KINDS),
            "description": "convention: how a project does things; preference: what the user likes; decision: what was decided; constraint: what must or must not be; fact: anything else.",
        },
    },
    "required": ["text", "kind"],
    "additionalProperties": False,
}


def install(registry: Any, config: Mapping[str, Any]) -> None:
    """Register the tool with DeerFlow. No network.

    Args:
        registry: The host's extension registry.
        config: The ``config`` of the plugin's YAML entry; it must be empty.

    Raises:
        PowerContextConfigurationError: The environment is wrong, ``config`` is not empty, or this DeerFlow has no
            plugin tools. The host logs it and starts without the tool, or not at all if the entry says ``required:
            true``.
    """
    if config:
        raise PowerContextConfigurationError("plugins[].config of the PowerContext tool must be empty; its settings are the POWERCONTEXT_DEERFLOW_ variables of the Gateway's environment")
    settings = load_settings()
    register = getattr(registry, "plugin", None)
    contribution = _contribution(settings) if register is not None else None
    if register is None or contribution is None or register(contribution) is not True:
        raise PowerContextConfigurationError("This DeerFlow has no plugin tools, so there is no `remember`: update it (extension API 0.2.2 or later) or remove the entry from `plugins`")


def _contribution(settings: PowerContextSettings) -> Any:
    """Return the plugin, or ``None`` on a host that has no such thing."""
    try:
        from deerflow_extension_api.plugins import ModelTool, PluginContribution
    except ImportError:
        return None
    saver = Saver(settings)

    async def remember(payload: Mapping[str, Any], context: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", result_without_host_tags(await _remember(saver, settings.people, payload, context)))

    tool = ModelTool(name="remember", description=DESCRIPTION, input_schema=INPUT_SCHEMA, handler=remember)
    return PluginContribution(
        namespace="powercontext",
        title="PowerContext memory",
        description="Saves what the user asks to have remembered in PowerContext.",
        enabled=True,
        tools=(tool,),
    )


async def _remember(saver: Saver, people: People, payload: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Save ``payload`` for the owner and return what the model may say of it.

    Raises:
        ToolException: It is not saved; the text says why.
    """
    from langchain_core.tools import ToolException

    binding = people.binding_of(getattr(getattr(context, "principal", None), "user_id", None))
    if binding is None:
        raise ToolException("Not saved: this memory belongs to another user.")
    kind, text = payload.get("kind"), payload.get("text")
    deadline = Deadline.after(CALL_SECONDS)
    outcome: Outcome
    try:
        outcome = await run(lambda: saver.save(binding, kind, text, deadline=deadline), deadline=deadline, abandoned=_log_abandoned)
    except PowerContextBusyError as error:
        outcome = NotSaved("busy", error)
    except PowerContextCancelledError as error:
        outcome = NotSaved("shutdown", error)
    _log(outcome, CALL_SECONDS - deadline.left(), binding)
    if isinstance(outcome, NotSaved):
        raise ToolException(f"Not saved: {_explain(outcome, text)}")
    return _result(outcome)


def _log(outcome: Outcome, elapsed_seconds: float, binding: Binding) -> None:
    if isinstance(outcome, NotSaved | Unknown) and outcome.error is not None:
        logger.warning("PowerContext save: %s. %s.", "not saved" if isinstance(outcome, NotSaved) else "unknown", describe(outcome.error, elapsed_seconds, binding))
    else:
        logger.debug("PowerContext save: %s, %.0f ms.", type(outcome).__name__, elapsed_seconds * 1000)


def _log_abandoned(outcome: Outcome) -> None:
    """Log what a save came to that nobody waits for any more, because its run was cancelled or the process ends."""
    if isinstance(outcome, Unknown):
        logger.warning("A save was cancelled after its write had begun; whether it is stored is unknown.")
    else:
        logger.debug("PowerContext save, cancelled: %s.", type(outcome).__name__)


def _result(outcome: Saved | AlreadySaved | Unknown) -> dict[str, Any]:
    if isinstance(outcome, Unknown):
        message = "It is not known whether this was saved. Tell the user so, and do not try again: it may have been stored."
        return {"outcome": "unknown", "citation": None, "message": message}
    citation = None if outcome.citation is None else outcome.citation.model_dump(mode="json")
    if isinstance(outcome, Saved):
        how = " (its confirmation was lost, so it was looked up)" if outcome.by_read_back else ""
        return {"outcome": "saved", "citation": citation, "message": f"Saved{how}; new conversations can recall it."}
    revision = f" (Memory revision {outcome.memory_revision.revision})" if outcome.memory_revision else ""
    return {"outcome": "already_saved", "citation": citation, "message": f"This was saved before; nothing was added{revision}."}


def _explain(outcome: NotSaved, text: Any) -> str:
    """Return one plain sentence that the model can pass on."""
    if outcome.reason == "too_long":
        return f"the text has {len(normalize(text).encode())} bytes, and at most {MAX_TEXT_BYTES} can be saved; shorten it."
    return {
        "empty": "there is no text.",
        "not_unicode": "the text has half a character in it (a lone surrogate); write it again.",
        "unknown_kind": f"the kind must be one of {', '.join(KINDS)}.",
        "token": "the memory server refuses the access token; the operator has to check it.",
        "scope": "the memory server does not have the configured Scope; the operator has to check it.",
        "busy": "the memory server is so slow that too many saves wait for it; it can be tried again later.",
        "shutdown": "DeerFlow is shutting down; it can be tried again when it is back.",
        "unreachable": "the memory server cannot be reached; it can be tried again later.",
        "overloaded": "the memory server is overloaded; it can be tried again in a moment.",
        "refused": "the memory server does not accept it; the operator finds the reason in the log.",
    }[outcome.reason]
