"""A chat model without a network, for a real DeerFlow Gateway: it does with the memory tools what a careful model does.

Named in ``config.yaml`` as ``powercontext_support.stub_model:StubModel``. It understands these messages::

    Remember: <text>                   memory_add
    What about <subject>?              memory_search
    Correct <subject>: <new text>      memory_search, then memory_update of the first that was found
    Forget <subject>                   memory_search, then memory_delete of the first that was found

and answers with what the last tool returned, unchanged; with "ok" to anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

_ASKED = re.compile(r"(?P<verb>Remember|What about|Correct|Forget):? (?P<rest>.+)")


class StubModel(BaseChatModel):
    """The model. DeerFlow's settings of a model are taken and ignored."""

    model: str = "stub"

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Take any tools: which there are is DeerFlow's business, and a call of one that is missing is answered by it."""
        return self.bind()

    def _generate(self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply_to(messages))])


def reply_to(messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the model's answer to a conversation."""
    place = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    asked = _ASKED.search(str(messages[place].text)) if messages else None
    told = [message for message in messages[place:] if isinstance(message, ToolMessage)]
    if asked is None:
        return AIMessage("ok")
    if not told:
        return _first_call(asked["verb"], asked["rest"].strip())
    found = _found(told[-1])
    if found and asked["verb"] == "Forget":
        return _call("memory_delete", fact_id=found[0]["id"])
    if found and asked["verb"] == "Correct":
        return _call("memory_update", fact_id=found[0]["id"], content=asked["rest"].partition(": ")[2].strip())
    return AIMessage(str(told[-1].text))


def _first_call(verb: str, rest: str) -> AIMessage:
    if verb == "Remember":
        return _call("memory_add", content=rest, category="convention")
    return _call("memory_search", query=rest.partition(": ")[0].rstrip("?"))


def _found(told: ToolMessage) -> list[dict[str, Any]]:
    """Return what a search found; nothing if it was another tool, or failed."""
    try:
        said = json.loads(str(told.text))
    except ValueError:
        return []
    return list(said.get("results", [])) if isinstance(said, dict) else []


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{uuid4()}", "type": "tool_call"}])
