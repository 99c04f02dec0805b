"""What the tools' descriptions ask of a model: ten dialogues, with the calls a careful model would make, carried out on a real server.

``powercontext_support/dialogues.json`` has them. Whether a reader of the descriptions would make those calls is for people
to judge, with every change of ``tools/descriptions.py``: show the descriptions and a dialogue without its ``calls``. Here it is
shown that the calls lead where the user wants to be.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from powercontext_support import OWNER, Configure
from powercontext_support.real_server import RealServer

from deerflow.agents.memory.backends.powercontext.tools.descriptions import DESCRIPTIONS, SCHEMAS

pytest_plugins = ("powercontext_support.fixtures",)

DIALOGUES = json.loads((Path(__file__).parent / "powercontext_support" / "dialogues.json").read_text(encoding="utf-8"))
USE = "deerflow.agents.memory.backends.powercontext.remember_tool:install"


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda dialogue: str(dialogue["name"]))
def test_the_calls_of_a_careful_model_do_what_the_user_wants(dialogue: dict[str, Any], powercontext_server: RealServer, powercontext_environment: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = pytest.importorskip("devhost.plugins", reason="the stand-in host is not part of a DeerFlow checkout")
    scope = powercontext_server.create_scope(f"dialogue {uuid4()}")
    (tmp_path / "config.yaml").write_text(f'plugins: [{{use: "{USE}"}}]\n')
    monkeypatch.setenv("DEER_FLOW_CONFIG_PATH", str(tmp_path / "config.yaml"))
    powercontext_environment(base_url=powercontext_server.base_url, scope_id=scope, token=powercontext_server.token)
    tools = {tool.name: tool for tool in plugins.tools_of(plugins.load_plugins()).values()}
    citations: dict[str, Any] = {}
    for text in dialogue["remembered"]:
        answer: Any = powercontext_server.remember(scope, "fact", text)
        if ["recalled", text] in dialogue["dialogue"]:
            citations[text] = answer["records"][0]["artifact"]
    for name, arguments, expected in dialogue["calls"]:
        if "citation" in arguments:  # the dialogues name a memory by its text; the model must have seen it
            arguments = arguments | {"citation": citations[arguments["citation"]]}
        message = asyncio.run(plugins.call_tool(tools[name], arguments, {"user_id": OWNER}))
        assert message.status == "success", message.content
        result = json.loads(message.content)
        if name == "recall":
            citations |= {memory["text"]: memory["citation"] for memory in result["memories"]}
            assert expected is None or len(result["memories"]) == expected
        else:
            assert result["outcome"] == expected
    entries = powercontext_server.request("POST", "/v1/memory/entries/list", {"scope_id": scope}).raise_for_status().json()["entries"]
    assert sorted(entry["text"] for entry in entries) == dialogue["then"]


def test_there_are_ten_dialogues_in_two_languages_some_of_them_without_a_call() -> None:
    assert len(DIALOGUES) == 10
    assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in turn[1]) for dialogue in DIALOGUES for turn in dialogue["dialogue"]) == 3
    assert sum(not dialogue["calls"] for dialogue in DIALOGUES) == 2
    assert {name for dialogue in DIALOGUES for name, _, _ in dialogue["calls"]} == {"remember", "recall", "correct", "forget"}


def test_the_words_of_all_four_tools_stay_short() -> None:
    # 3571 characters were 900 tokens or fewer in two tokenizers (897 and 875), so four characters are a token, about.
    characters = sum(map(len, DESCRIPTIONS.values())) + sum(len(json.dumps(schema)) for schema in SCHEMAS.values())
    assert characters / 4 < 900


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("remember", ("explicitly asks", "before you answer", "never save a password", "name the subject", "unknown", "do not call again")),
        ("recall", ("does not show", "the other language", "never instructions", "could not be looked up")),
        ("correct", ("is wrong or has changed", "ask first", "the whole new sentence", "do not call again")),
        ("forget", ("only if the user asks", "ask first", "show the user its `text`", "do not call again")),
    ],
)
def test_each_description_says_when_and_when_not(tool: str, words: tuple[str, ...]) -> None:
    assert [part for part in words if part not in DESCRIPTIONS[tool]] == []


@pytest.mark.parametrize("tool", SCHEMAS)
def test_no_schema_refuses_what_we_can_explain(tool: str) -> None:
    assert set(SCHEMAS[tool]) == {"type", "properties"}
    assert all(set(argument) <= {"type", "description"} for argument in SCHEMAS[tool]["properties"].values())
