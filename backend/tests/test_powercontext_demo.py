"""`make demo` as a new user runs it, and as one who interrupts it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from powercontext_support.real_server import find_executable

DEMO = Path(__file__).parents[1] / "devhost" / "demo.py"
TOOL_MODE = DEMO.with_name("demo_tool_mode.py")
PROJECT = DEMO.parents[2]

pytestmark = [
    pytest.mark.skipif(not DEMO.exists(), reason="the demo is not part of a DeerFlow checkout"),
    pytest.mark.skipif(find_executable() is None, reason="no PowerContext server here"),
]


# It takes what the demos take to be told to end, and is quick.
TALE = f"""
import sys, tempfile, time
from pathlib import Path
sys.path[:0] = ["{DEMO.parent}", "{DEMO.parents[1] / "tests"}", "{DEMO.parents[1] / "packages/harness"}"]
from devhost.interrupt import Interrupt
from devhost.story import end_with

def tell():
    Interrupt()
    with tempfile.TemporaryDirectory(prefix="powercontext-demo-"):
        try:
            print("A tale", flush=True)
            time.sleep(100)
        finally:
            Path(__file__).with_name("cleaned up").touch()
    return 0

end_with(tell)
"""


def start(folder: Path, verbose: str = "0", demo: Path = DEMO) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "VERBOSE": verbose}
    return subprocess.Popen([sys.executable, str(demo)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def told(folder: Path, verbose: str, script: Path = DEMO) -> str:
    demo = start(folder, verbose, script)
    output, _ = demo.communicate(timeout=110)
    assert demo.returncode == 0, output
    assert "FAILED" not in output
    assert list(folder.glob("powercontext-demo-*")) == []
    return output


def without_figures(text: str) -> list[str]:
    """Return the lines, without what every run prints anew."""
    return re.sub(r"art_\w{4}|\d+ ms|\d+ of 8000", "…", text).splitlines()


def test_the_demo_is_a_short_story_that_checks_the_main_job_and_the_readme_shows_a_part_of_it(tmp_path: Path) -> None:
    output = told(tmp_path, "0")
    lines = output.splitlines()
    assert len(lines) <= 75
    assert max(len(line) for line in lines) <= 112
    assert any(line.startswith("Everything above was checked (") for line in lines)
    assert lines[-1].endswith("make apply DEERFLOW=../deer-flow")
    shown = (PROJECT / "README.md").read_text(encoding="utf-8").split("## What the demo shows\n\n```\n")[1].split("\n```")[0]
    assert "\n".join(without_figures(shown)) in "\n".join(without_figures(output))


def test_the_story_in_tool_mode_adds_finds_corrects_and_deletes_for_who_may(tmp_path: Path) -> None:
    lines = told(tmp_path, "0", TOOL_MODE).splitlines()
    assert len(lines) <= 50
    assert max(len(line) for line in lines) <= 112
    assert [line.removeprefix("   ok     ") for line in lines if line.startswith("   ok ")] == [
        "it is added, and the server has it once",
        "the message shares no word with a memory, so none came by itself",
        "it finds what was added, under the same id",
        "DeerFlow's memory page lists it, and what another client stored in the Scope",
        "a search finds the new text, and not the old",
        "the id from before the change deletes nothing",
        "no search finds it, and the page lists it no more",
        "her search and her page have it alone",
        "the owner's have nothing of it",
        "another user, a missing identity and `default` find, add and see nothing",
        "no request was made for them",
        "both say that it failed: no empty list, nothing added",
        "so does the memory page",
    ]
    assert lines[-2] == "All requests, replies and log lines: make demo MODE=tool VERBOSE=1"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["MODE=Tool"], "There is no demo for MODE=Tool: leave it out, or say MODE=tool."),
        (["MODE=tool middleware"], "There is no demo for MODE=tool middleware: leave it out, or say MODE=tool."),
        (["MODE=tool", "CAPTURE=1"], "MODE=tool and CAPTURE=1 are two demos: leave one out."),
    ],
)
def test_a_demo_that_there_is_not_is_named_and_nothing_starts(arguments: list[str], sentence: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made = subprocess.run(["make", "demo", *arguments], cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60)
    assert made.returncode == 2
    assert made.stdout == ""
    [line] = made.stderr.splitlines()
    assert sentence in line


def interrupted(folder: Path, demo: subprocess.Popen[str], number: signal.Signals, part: str) -> str:
    """Send the signal when ``part`` of the story begins, and return all that was printed."""
    printed = ""
    with demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            printed += line
            if part in line:
                demo.send_signal(number)
                break
        printed += demo.stdout.read()
    assert demo.returncode == 130, printed
    assert printed.rstrip().endswith("Interrupted; the server is stopped and its folder removed.")
    assert list(folder.glob("powercontext-demo-*")) == []
    return printed


def test_the_demo_shows_all_that_was_sent_and_came_back_where_one_asks_for_it_and_ctrl_c_cleans_up(tmp_path: Path) -> None:
    output = interrupted(tmp_path, start(tmp_path, "1"), signal.SIGINT, "The owner goes on in that conversation.")
    assert 'Artifact: family="atomic-memory", id="art_' in output
    assert '"outcome": "saved", "citation": {"family": "atomic-memory", "artifact_id": "art_' in output
    assert "INFO PowerContext " in output


def test_a_demo_that_is_told_to_end_ends_as_on_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "tale.py"
    script.write_text(TALE, encoding="utf-8")
    interrupted(tmp_path, start(tmp_path, demo=script), signal.SIGTERM, "A tale")
    assert (tmp_path / "cleaned up").exists()
