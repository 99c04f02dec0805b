"""`make demo` as a new user runs it, and as one who interrupts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from powercontext_support.real_server import find_executable

DEMO = Path(__file__).parents[1] / "devhost" / "demo.py"

pytestmark = [
    pytest.mark.skipif(not DEMO.exists(), reason="the demo is not part of a DeerFlow checkout"),
    pytest.mark.skipif(find_executable() is None, reason="no PowerContext server here"),
]


def start(folder: Path, verbose: str = "0") -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "VERBOSE": verbose}
    return subprocess.Popen([sys.executable, str(DEMO)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def told(folder: Path, verbose: str) -> str:
    demo = start(folder, verbose)
    output, _ = demo.communicate(timeout=110)
    assert demo.returncode == 0, output
    assert "FAILED" not in output
    assert list(folder.glob("powercontext-demo-*")) == []
    return output


def test_the_demo_is_a_short_story_that_checks_the_main_job(tmp_path: Path) -> None:
    lines = told(tmp_path, "0").splitlines()
    assert len(lines) <= 75
    assert max(len(line) for line in lines) <= 112
    assert any(line.startswith("Everything above was checked (") for line in lines)
    assert lines[-1].endswith("make apply DEERFLOW=../deer-flow")


def test_the_demo_shows_all_that_was_sent_and_came_back_where_one_asks_for_it(tmp_path: Path) -> None:
    output = told(tmp_path, "1")
    assert 'Artifact: family="atomic-memory", id="art_' in output
    assert '"outcome": "saved", "citation": {"family": "atomic-memory", "artifact_id": "art_' in output
    assert "WARNING PowerContext recall failed: " in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "The owner asks" in line:
                demo.send_signal(number)
                break
        rest = demo.stdout.read()
    assert demo.returncode == 130, rest
    assert rest.rstrip().endswith("Interrupted; the server is stopped and its folder removed.")
    assert list(tmp_path.glob("powercontext-demo-*")) == []
