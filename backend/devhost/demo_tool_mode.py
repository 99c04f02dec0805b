"""The story with DeerFlow's own memory tools and its memory page (``memory.mode: tool``). ``make demo MODE=tool`` runs it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

BACKEND = Path(__file__).resolve().parents[1]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the story begins: there is nothing to stop yet
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests")]

from devhost.conversation import Conversation  # noqa: E402
from devhost.memory_tools import Tool, call_memory_tool, memory_page, memory_tools  # noqa: E402
from devhost.story import ASKED, COLLEAGUE, COLLEAGUES, CORRECTED, FROM_ANOTHER_CLIENT, OWNER, SAVED, STRANGERS, Story, end_with, tell  # noqa: E402

from deerflow.agents.memory.manager import MemoryManagerError  # noqa: E402

OPENED_WITH = "Let us go on with the shop."
LOOKED_UP = "money amounts of the order service"

CONFIG = """\
memory:
  enabled: true
  manager_class: powercontext
  mode: tool
"""

Whose = Mapping[str, str]
THE_OWNER: Whose = {"user_id": OWNER}
THE_COLLEAGUE: Whose = {"user_id": COLLEAGUE}


class ToolModeDemo(Story):
    """Tells it with the host's tools; there is no plugin."""

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """What the model is offered."""
        return memory_tools()

    def ask(self, tool: str, context: Whose, **arguments: Any) -> dict[str, Any]:
        """Call a tool as a model would in a run of ``context``, and return what the model gets back."""
        return dict(json.loads(self.calls.run(call_memory_tool(self.tools[tool], arguments, context))))

    def call(self, tool: str, context: Whose, **arguments: Any) -> dict[str, Any]:
        """Do the same, and print it."""
        result = self.ask(tool, context, **arguments)
        told = [(result["error"], None)] if "error" in result else [(fact["content"], fact["id"]) for fact in result.get("results", ())]
        self.teller.call(tool, arguments, json.dumps(result, ensure_ascii=False), told)
        return result

    def found(self, context: Whose) -> dict[str, str]:
        """Return what a search finds, and the ids; nothing of it is printed."""
        answer = self.ask("memory_search", context, query=LOOKED_UP)
        return {fact["content"]: fact["id"] for fact in answer.get("results", ())}

    def listed(self, context: Whose) -> list[str]:
        """Return what the memory page lists, sorted."""
        return sorted(fact["content"] for fact in self.calls.run(memory_page(context))["facts"])

    def run(self) -> None:
        """Tell the story, step by step."""
        fact_id = self.add_what_the_user_asks()
        self.search_in_a_new_conversation(fact_id)
        self.update_and_delete(fact_id)
        self.other_people()
        self.server_down()

    def add_what_the_user_asks(self) -> str:
        """Save a convention, and return its id."""
        self.teller.part("The owner asks to remember something. The model has DeerFlow's own four memory tools.")
        self.teller.say("owner", ASKED)
        added = self.call("memory_add", THE_OWNER, content=SAVED, category="convention")
        self.check("it is added, and the server has it once", added.get("status") == "added" and self.stored(SAVED) == 1)
        return str(added.get("fact_id", ""))

    def search_in_a_new_conversation(self, fact_id: str) -> None:
        """Open a new conversation of the owner, and look at the memory page."""
        self.teller.part("The owner opens a new conversation. The model searches, in words of its own.")
        self.server.remember(self.scope_id, "decision", FROM_ANOTHER_CLIENT)
        messages, _ = self.turn(Conversation(THE_OWNER), OPENED_WITH)
        self.teller.messages(messages)
        texts = [message["content"] for message in messages]
        self.check("the message shares no word with a memory, so none came by itself", texts == [OPENED_WITH])
        results = self.call("memory_search", THE_OWNER, query=LOOKED_UP).get("results", ())
        self.check("it finds what was added, under the same id", (SAVED, fact_id) in [(fact["content"], fact["id"]) for fact in results])
        both = [SAVED, FROM_ANOTHER_CLIENT]
        self.check("DeerFlow's memory page lists it, and what another client stored in the Scope", self.listed(THE_OWNER) == both)

    def update_and_delete(self, fact_id: str) -> None:
        """Change a memory, and take it away."""
        self.teller.part("The owner says that the memory is wrong, and later that it can go.")
        self.call("memory_update", THE_OWNER, fact_id=fact_id, content=CORRECTED)
        now = self.found(THE_OWNER)
        self.check("a search finds the new text, and not the old", CORRECTED in now and SAVED not in now)
        stale = self.ask("memory_delete", THE_OWNER, fact_id=fact_id)
        self.check("the id from before the change deletes nothing", list(stale) == ["error"] and self.stored(CORRECTED) == 1)
        self.call("memory_delete", THE_OWNER, fact_id=now.get(CORRECTED, fact_id))
        left = [FROM_ANOTHER_CLIENT]
        self.check("no search finds it, and the page lists it no more", list(self.found(THE_OWNER)) == left == self.listed(THE_OWNER))

    def other_people(self) -> None:
        """Add and look as a colleague, as somebody else, as nobody, and as DeerFlow's stand-in for nobody."""
        self.teller.part("A colleague has a Scope of her own. Somebody else has none.")
        self.call("memory_add", THE_COLLEAGUE, content=COLLEAGUES, category="convention")
        hers = [COLLEAGUES]
        self.check("her search and her page have it alone", list(self.found(THE_COLLEAGUE)) == hers == self.listed(THE_COLLEAGUE))
        self.check("the owner's have nothing of it", COLLEAGUES not in [*self.found(THE_OWNER), *self.listed(THE_OWNER)])
        before = len(self.relay.requests)
        got: list[object] = []
        for context in STRANGERS.values():
            added = self.ask("memory_add", context, content=SAVED)
            got += [self.ask("memory_search", context, query=LOOKED_UP), list(added), self.listed(context)]
            self.teller.detail("result:", str(added))
        nothing = [{"results": [], "count": 0}, ["error"], []]
        self.check("another user, a missing identity and `default` find, add and see nothing", got == nothing * 3)
        self.check("no request was made for them", len(self.relay.requests) == before)

    def server_down(self) -> None:
        """Stop the server, and do the same again."""
        self.teller.part("The server is stopped.")
        self.stop_the_server()
        searched = self.call("memory_search", THE_OWNER, query=LOOKED_UP)
        added = self.call("memory_add", THE_OWNER, content=SAVED, category="convention")
        self.check("both say that it failed: no empty list, nothing added", [list(searched), list(added)] == [["error"], ["error"]])
        try:
            shown = bool(self.calls.run(memory_page(THE_OWNER)))
        except MemoryManagerError:
            shown = False
        self.check("so does the memory page", not shown)


if __name__ == "__main__":
    end_with(lambda: tell(ToolModeDemo, CONFIG, "make demo MODE=tool"))
