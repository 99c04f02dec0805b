"""The measuring scripts run, in tiny, and say what they are there to say. ``make test-scripts`` runs these tests."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from powercontext_support.real_server import find_executable

SCRIPTS = Path(__file__).parents[1] / "scripts" / "measuring"

pytestmark = pytest.mark.skipif(not SCRIPTS.exists(), reason="the scripts are not part of a DeerFlow checkout")
needs_server = pytest.mark.skipif(find_executable() is None, reason="no PowerContext server here")


def run(script: str, *arguments: str, codes: Collection[int] = (0,)) -> str:
    """Return what the script prints. One that takes too long is interrupted, not killed: it has a server to stop."""
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate(timeout=120)
        except BaseException:
            process.send_signal(signal.SIGINT)
            raise
    assert process.returncode in codes, output + errors
    assert errors == "" or process.returncode == 2
    return output


@needs_server
def test_the_bench_compares_recall_with_httpx_and_the_official_client() -> None:
    lines = run("bench.py", "--quick", "--seed", "1").splitlines()
    assert lines[0].startswith("`make bench`, seed 1. 20")
    assert [line.split("|")[1].strip() for line in lines if " x" in line and line.startswith("|")] == [
        "raw socket",
        "`httpx.Client.post(...).json()`",
        "the same twice: search, prepare",
        "`get_context`, full",
        "`get_context`, focused",
        "`await aget_context`, focused",
        "PowerContext's client, loop thread",
        "PowerContext's client, `asyncio.run`",
    ]
    assert sum(" thread" in line and line.startswith("| ") and "client" not in line for line in lines) == 18
    assert any(line.startswith("| save of the same text again |") for line in lines)


def test_the_deadlines_of_two_faults_are_measured_and_judged() -> None:
    # Whether every limit holds depends on how busy the machine is, so it is for `make deadlines` to say.
    output = run("deadlines.py", "--only", "silent,refused", "--repeats", "1", codes=(0, 1))
    assert "| silent  |        1." in output
    assert "| refused |        0." in output
    assert "200 callers, silent server: longest 1." in output
    [sockets] = re.findall(r"(\d+) sockets to the server", output)
    assert 0 < int(sockets) <= 16  # on a busy machine not all are open yet when it looks
    assert "six threads, silent server: a stranger waited " in output
    assert "\nEvery limit holds. " in output or "\nTOO LATE. " in output


def test_an_unknown_fault_is_refused() -> None:
    assert run("deadlines.py", "--only", "boredom", codes=(2,)) == ""


def test_mutated_replies_and_settings_raise_nothing_foreign() -> None:
    output = run("fuzz.py", "--replies", "4000", "--seed", "7")
    assert "4000 mutated replies, read as each of the models: " in output
    assert re.search(r"\n100 calls through a proxy that answers itself: .*\d+ save: Saved", output)
    assert output.splitlines()[-1].startswith("Nothing but our errors, and nothing accepted that is not what it claims.")


def test_a_short_soak_leaves_nothing_behind() -> None:
    output = run("soak.py", "--recalls", "300", "--seed", "7")
    assert output.startswith("seed 7\n300 recalls: ")
    assert "left after close: 0 descriptors, 0 threads" in output
    assert re.search(r"\n\d+ runs beside them: \d+ cancelled, ", output)
    assert re.search(r"\n\d+ children forked, 0 of them hung or failed\n", output)
    assert "close() during 32 recalls: 32 got their memory, 0 came after it" in output
    assert "Nothing was left behind." in output


@needs_server
def test_a_short_audit_finds_no_false_claim() -> None:
    # How long somebody waits and how much stays unknown depends on how busy the machine is, so it is for `make audit` to judge.
    output = run("audit.py", "--saves", "20", "--offsets", "5", "--seed", "1", codes=(0, 1))
    assert "the reply was cut at 5 offsets" in output
    assert "\nsaved but not in the store: 0\nnot saved but in the store: 0\nwritten once but stored twice: 0\n" in output
    assert "\nconfirmed, said again and stored twice: 0\nin the store, and never told of: 0\n" in output
    assert ", 0 hung" in output


@needs_server
def test_a_short_audit_of_changes_finds_no_false_claim() -> None:
    output = run("audit_changes.py", "--changes", "9", "--offsets", "10", "--seed", "1")
    assert " corrections: " in output
    assert " forgettings: " in output
    assert "claims that the store contradicts: 0;" in output
    assert output.rstrip().endswith("Every claim holds.")


@needs_server
@pytest.mark.parametrize("tokens", ["one", "each"])
def test_nothing_of_anybody_reaches_anybody_else_in_a_crowd(tokens: str) -> None:
    output = run("crowd.py", "--people", "6", "--threads", "12", "--calls", "120", "--tokens", tokens, "--seed", "1")
    assert output.splitlines()[-1] == "Nothing of anybody reached anybody else."
    assert all(f"  {kind}: " in output for kind in ("first turn", "remember", "recall", "correct", "forget"))
