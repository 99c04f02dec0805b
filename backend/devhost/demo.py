"""The main job, shown on a real PowerContext server: what is remembered in one conversation is there in the next. ``make demo`` runs it."""

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

from deerflow_extension_api.plugins import ModelTool  # noqa: E402
from devhost.conversation import Conversation  # noqa: E402
from devhost.plugins import call_tool, load_plugins, tools_of  # noqa: E402
from devhost.story import ASKED, COLLEAGUE, COLLEAGUES, CORRECTED, FROM_ANOTHER_CLIENT, OWNER, SAVED, STRANGERS, Story, end_with, tell  # noqa: E402
from powercontext_support.byte_server import Request  # noqa: E402
from powercontext_support.relay import Passage  # noqa: E402

REQUEST = "Add a refund calculation to the order service, following its conventions."
LOST = "Order service constraint: a refund needs a second approval above 500 euros."

CONFIG = """\
memory:
  enabled: true
  manager_class: powercontext
  mode: middleware
plugins:
  - use: "deerflow.agents.memory.backends.powercontext.remember_tool:install"
"""


class Demo(Story):
    """Tells it with the tools of the plugin."""

    @cached_property
    def tools(self) -> dict[str, ModelTool]:
        """What the model is offered."""
        return {tool.name: tool for tool in tools_of(load_plugins()).values()}

    def call(self, tool: str, arguments: Mapping[str, Any], context: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Call a tool as a model would in a run of ``context``; return the status and what the model gets back."""
        message = self.calls.run(call_tool(self.tools[tool], arguments, context))
        result = json.loads(message.content) if message.status == "success" else {}
        told = [(memory["text"], memory["citation"]) for memory in result.get("memories", ())]
        if not result:
            told = [(message.content, None)]
        elif "message" in result:
            told = [(f"{result['outcome']}: {result['message']}", result["citation"])]
        self.teller.call(tool, arguments, message.content, told)
        return message.status, result

    def save(self, text: str, context: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Call ``remember``."""
        return self.call("remember", {"text": text, "kind": "convention"}, context)

    def run(self) -> None:
        """Tell the story, step by step."""
        self.save_what_the_user_asks()
        self.store_from_another_client()
        conversation = self.recall_in_a_new_conversation()
        self.second_turn(conversation)
        self.correct_and_forget()
        self.second_person()
        self.other_callers()
        self.lost_replies()
        self.server_down()

    def save_what_the_user_asks(self) -> None:
        """Save a convention, and save it again."""
        self.teller.part("The owner asks to remember something.")
        self.teller.say("owner", ASKED)
        status, result = self.save(SAVED, {"user_id": OWNER})
        self.check("it is saved, with the server's citation", (status, result["outcome"]) == ("success", "saved") and result["citation"]["artifact_id"].startswith("art_"))
        _, again = self.save(SAVED, {"user_id": OWNER})
        self.check("saving it again adds nothing", again["outcome"] == "already_saved" and again["citation"] == result["citation"])
        self.check("the server has it once", self.stored(SAVED) == 1)

    def store_from_another_client(self) -> None:
        """Store a decision through PowerContext's own API."""
        self.teller.part("Another client of PowerContext stores something in the same Scope.")
        self.teller.say("client", FROM_ANOTHER_CLIENT)
        self.server.remember(self.scope_id, "decision", FROM_ANOTHER_CLIENT)

    def recall_in_a_new_conversation(self) -> Conversation:
        """Open a new conversation of the owner."""
        self.teller.part("The owner opens a new conversation. This is what the model is sent:")
        conversation = Conversation({"user_id": OWNER})
        before = len(self.relay.requests)
        messages, milliseconds = self.turn(conversation, REQUEST)
        self.teller.messages(messages)
        memory = messages[0]["content"]
        used = len(memory.removeprefix("<memory>\n").removesuffix("\n</memory>").encode())
        self.check("what the owner had remembered is in it, as a message of the user's role", SAVED in memory and messages[0]["role"] == "user")
        self.check("what the other client stored is in it", FROM_ANOTHER_CLIENT in memory)
        self.check("both are cited", memory.count('Artifact: family="atomic-memory", id="art_') == 2)
        self.check(f"it is within its budget: {used} of 8000 bytes", used <= 8000)
        self.check(f"it took two requests (search, prepare) and {milliseconds:.0f} ms", len(self.relay.requests) == before + 2)
        return conversation

    def second_turn(self, conversation: Conversation) -> None:
        """Go on in the same conversation."""
        self.teller.part("The owner goes on in that conversation.")
        before = len(self.relay.requests)
        messages, _ = self.turn(conversation, "Now write its test.")
        self.check("the memory is still there, once", sum(SAVED in message["content"] for message in messages) == 1)
        self.check("the server was not asked again", len(self.relay.requests) == before)

    def correct_and_forget(self) -> None:
        """Change a memory, and take it away, by the citation that the model found."""
        self.teller.part("The owner says that a memory is wrong, and later that it can go.")
        context = {"user_id": OWNER}
        _, found = self.call("recall", {"query": "money amounts of the order service"}, context)
        [cited] = [memory["citation"] for memory in found["memories"] if memory["text"] == SAVED]
        _, corrected = self.call("correct", {"citation": cited, "text": CORRECTED}, context)
        self.check("it is corrected, in a new revision", corrected.get("outcome") == "corrected" and corrected["citation"]["revision"] == 2)
        messages, _ = self.turn(Conversation(context), REQUEST)
        self.check("a new conversation gets the new text, and not the old", CORRECTED in messages[0]["content"] and SAVED not in messages[0]["content"])
        _, forgotten = self.call("forget", {"citation": corrected.get("citation", cited)}, context)
        messages, _ = self.turn(Conversation(context), REQUEST)
        gone = CORRECTED not in messages[0]["content"]
        self.check("it is forgotten, and no new conversation gets it", forgotten.get("outcome") == "forgotten" and gone)

    def second_person(self) -> None:
        """Let a colleague save and recall, and look at both."""
        self.teller.part("A colleague signs in. One command, `bind add`, gave her a Scope of her own.")
        _, result = self.save(COLLEAGUES, {"user_id": COLLEAGUE})
        self.check("what she saves is not in the owner's Scope", result.get("outcome") == "saved" and self.stored(COLLEAGUES) == 0)
        hers, owners = ("".join(message["content"] for message in self.turn(Conversation({"user_id": who}), REQUEST)[0]) for who in (COLLEAGUE, OWNER))
        self.check("her new conversation gets it, and nothing of the owner's", COLLEAGUES in hers and FROM_ANOTHER_CLIENT not in hers)
        self.check("the owner's new conversation gets nothing of hers", COLLEAGUES not in owners and FROM_ANOTHER_CLIENT in owners)

    def other_callers(self) -> None:
        """Ask and save as somebody else, as nobody, and as DeerFlow's stand-in for nobody."""
        self.teller.part("Somebody else does the same.")
        before = len(self.relay.requests)
        for name, context in STRANGERS.items():
            messages, _ = self.turn(Conversation(context), REQUEST)
            message = self.calls.run(call_tool(self.tools["remember"], {"text": SAVED, "kind": "convention"}, context))
            self.teller.detail("result:", message.content)
            self.check(f"{name} recalls and saves nothing", [message["content"] for message in messages] == [REQUEST] and message.status == "error")
        self.check("no request was made for them, by recall or by the tool", len(self.relay.requests) == before)

    def lost_replies(self) -> None:
        """Lose the reply to a write, once with the server there to ask, once without."""
        self.teller.part("The reply to a save is lost on its way.")
        self.relay.plan = lambda request: Passage(reply_bytes=0) if request.path.endswith("/remember") else Passage()
        _, result = self.save(LOST, {"user_id": OWNER})
        self.check("it is saved: the tool found it by asking once more", result["outcome"] == "saved" and self.stored(LOST) == 1)
        lost: list[Request] = []

        def from_the_write_on(request: Request) -> Passage:
            if lost or request.path.endswith("/remember"):
                lost.append(request)
            return Passage(reply_bytes=0) if lost else Passage()

        self.relay.plan = from_the_write_on
        _, result = self.save(f"{LOST} It is logged.", {"user_id": OWNER})
        self.check("and where nothing answers that question, it is unknown", result["outcome"] == "unknown" and result["citation"] is None)

    def server_down(self) -> None:
        """Stop the server, chat on, and try to save."""
        self.teller.part("The server is stopped.")
        self.stop_the_server()
        messages, milliseconds = self.turn(Conversation({"user_id": OWNER}), REQUEST)
        self.check(f"the conversation goes on without memory, after {milliseconds:.0f} ms", [message["content"] for message in messages] == [REQUEST])
        self.check("within the limit of 2 s", milliseconds < 2100)
        status, _ = self.save(SAVED, {"user_id": OWNER})
        self.check("a save says that it is none", status == "error")


if __name__ == "__main__":
    end_with(lambda: tell(Demo, CONFIG, "make demo"))
