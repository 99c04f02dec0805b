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


def start(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, str(DEMO)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_the_demo_shows_and_checks_the_main_job(tmp_path: Path) -> None:
    demo = start(tmp_path)
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, output
    assert "Everything above was checked." in output
    assert 'citation: Artifact: family="atomic-memory", id="art_' in output
    assert "FAILED" not in output
    assert list(tmp_path.glob("powercontext-demo-*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "The owner says" in line:
                demo.send_signal(number)
                break
        rest = demo.stdout.read()
    assert demo.returncode == 130, rest
    assert rest.rstrip().endswith("Interrupted; the server is stopped and its folder removed.")
    assert list(tmp_path.glob("powercontext-demo-*")) == []
