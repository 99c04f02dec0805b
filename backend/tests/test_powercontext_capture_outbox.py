"""The outbox: durable before it is claimed, bounded, in order, for several processes, and honest about a bad disk."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deerflow.agents.memory.backends.powercontext.capture.outbox import Outbox
from deerflow.agents.memory.backends.powercontext.capture.outbox_models import Heard, Limits
from deerflow.agents.memory.backends.powercontext.capture.selection import Said, Turn

LIMITS = Limits(max_entries=1000, max_bytes=1_000_000, max_age_seconds=3600)


def heard(*texts: str, thread: str = "t1", compaction: bool = False) -> Heard:
    """Return a conversation in which the user wrote ``texts``, each in a turn whose id is its number."""
    turns = [Turn((Said(str(number), "user", text),), answered=False, explicit=False) for number, text in enumerate(texts)]
    return Heard("alice", "scope-1", thread, turns, compaction)


def texts_in(outbox: Outbox) -> list[str]:
    return [source.content for source in map(outbox.read, outbox.waiting()) if source is not None]


def file_in(folder: Path) -> Path:
    return folder / "powercontext" / "outbox.sqlite3"


def test_what_was_heard_waits_in_order_also_for_another_process(tmp_path: Path) -> None:
    assert Outbox(tmp_path, LIMITS).hear([heard("one"), heard("two", thread="t2")]) == {"queued": 2}
    Outbox(tmp_path, LIMITS).hear([heard("one", "three")])
    assert texts_in(Outbox(tmp_path, LIMITS)) == ["one", "two", "three"]


def test_nothing_is_heard_twice_also_after_it_was_sent_or_purged(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one")])
    outbox.sent(outbox.waiting()[0])
    outbox.hear([heard("one", "two"), heard("one", "two")])
    assert outbox.purge() == 1
    assert outbox.hear([heard("one", "two")]) == {}
    assert outbox.status().counts == {"purged": 1, "queued": 2, "sent": 1}


def test_only_the_gateways_user_can_read_the_file_and_no_other_stays_beside_it(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    before = os.umask(0)
    outbox.hear([heard("one")])
    os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file_in(tmp_path).parent, file_in(tmp_path))] == [0o700, 0o600]
    file_in(tmp_path).chmod(0o644)
    outbox.waiting()
    assert stat.S_IMODE(file_in(tmp_path).stat().st_mode) == 0o600
    beside = [path for path in file_in(tmp_path).parent.iterdir() if path != file_in(tmp_path)]
    assert sum(path.stat().st_size for path in beside) == 0


def test_what_was_sent_or_purged_is_wiped_from_the_file(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("A text that is sent. " * 400), heard("A text that is purged. " * 400, thread="t2")])
    assert b"A text that is" in file_in(tmp_path).read_bytes()
    outbox.sent(outbox.waiting()[0])
    outbox.purge()
    assert b"A text that is" not in file_in(tmp_path).read_bytes()


def test_a_full_outbox_refuses_what_is_new_and_drops_nothing_old(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, Limits(max_entries=3, max_bytes=1_000_000, max_age_seconds=3600))
    outbox.hear([heard("one", thread="t0")])
    outbox.hear([heard("zero")])
    assert outbox.hear([heard("zero", "two", "three", "four")]) == {"queued": 1, "refused": 2}
    assert texts_in(outbox) == ["one", "zero", "two"]
    outbox.sent(outbox.waiting()[0])
    assert outbox.hear([heard("zero", "two", "three", "four")]) == {"queued": 1, "refused": 1}
    assert texts_in(outbox) == ["zero", "two", "three"]


def test_the_bytes_of_what_waits_are_bounded_too(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, Limits(max_entries=1000, max_bytes=2000, max_age_seconds=3600))
    assert outbox.hear([heard("字" * 600), heard("字" * 600, thread="t2")]) == {"queued": 1, "refused": 1}


def test_what_waited_too_long_is_dropped_and_counted(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one")])
    late = Outbox(tmp_path, Limits(max_entries=1000, max_bytes=1_000_000, max_age_seconds=0))
    assert late.expire() == 1
    assert (late.waiting(), late.status().counts["expired"]) == ([], 1)
    assert outbox.hear([heard("one")]) == {}


def test_a_parked_entry_is_kept_counted_and_sent_again_only_when_asked(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one"), heard("two", thread="t2")])
    outbox.park(outbox.waiting()[0], "invalid_request")
    status = outbox.status()
    assert (status.waiting, status.parked, texts_in(outbox)) == (1, {"invalid_request": 1}, ["two"])
    assert outbox.retry() == 1
    assert texts_in(outbox) == ["one", "two"]


def test_an_entry_belongs_to_the_scope_it_was_heard_for(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one")])
    assert outbox.waiting()[0].destination == outbox.destination_of("scope-1") != outbox.destination_of("scope-2")


def test_a_save_in_a_turn_that_compaction_cut_is_kept_in_mind(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("zero")])
    outbox.hear([Heard("alice", "scope-1", "t1", [Turn((), answered=False, explicit=True)], compaction=True)])
    assert Outbox(tmp_path, LIMITS).hear([heard("zero", "saved")]) == {"left out: explicit": 1}
    assert outbox.hear([heard("zero", "saved", "next")]) == {"queued": 1}


def test_what_compaction_takes_of_a_turn_waits_until_the_turn_is_over(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one"), heard("one", "two", compaction=True)])
    assert (texts_in(outbox), outbox.status().waiting, outbox.retry()) == (["one"], 2, 0)
    outbox.hear([Heard("alice", "scope-1", "t1", [Turn((Said("x", "assistant", "Done."),), answered=True, explicit=False)])])
    assert texts_in(outbox) == ["one", "two", "Done."]


@pytest.mark.parametrize(
    "rest",
    [Turn((), answered=True, explicit=True), Turn((Said("1", "user", "two", "explicit"),), answered=True, explicit=True), Turn((Said("9", "user", "", "credential"), Said("1", "user", "", "credential")), answered=False, explicit=False)],
)
def test_what_compaction_took_of_a_turn_is_forgotten_if_the_turn_stays(rest: Turn, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    outbox.hear([heard("one"), heard("one", "two", compaction=True)])
    outbox.hear([Heard("alice", "scope-1", "t1", [rest])])
    assert texts_in(outbox) == ["one"]
    assert outbox.status().waiting == 1


def hear_many(folder: Path, worker: int) -> None:
    outbox = Outbox(folder, LIMITS)
    for number in range(1, 26):
        outbox.hear([heard(*(f"w{worker}-{index}" for index in range(number)), thread=f"t{worker}")])


def test_processes_share_the_file(tmp_path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    workers = [spawning.Process(target=hear_many, args=(tmp_path, worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    texts = texts_in(Outbox(tmp_path, LIMITS))
    assert [[text for text in texts if text.startswith(f"w{worker}")] for worker in range(3)] == [[f"w{worker}-{index}" for index in range(25)] for worker in range(3)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_goes_on_with_the_same_file(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, LIMITS)
    done = threading.Event()

    def hear_on() -> None:
        for number in range(200):
            if done.is_set():
                return
            outbox.hear([heard(f"parent {number}", thread=f"p{number}")])

    busy = threading.Thread(target=hear_on)
    busy.start()
    codes = []
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            outbox.hear([heard(f"child {child}", thread=f"c{child}")])
            os._exit(0)
        codes.append(os.waitpid(pid, 0)[1])
    done.set()
    busy.join()
    assert codes == [0, 0, 0]
    assert {f"child {child}" for child in range(3)} <= set(texts_in(outbox))


HEAR_AND_DIE = """
import os, signal, sys
from pathlib import Path
from test_powercontext_capture_outbox import LIMITS, Outbox, heard
outbox = Outbox(Path(sys.argv[1]), LIMITS)
for number in range(10**6):
    outbox.hear([heard("x" * 3000, thread=str(number))])
    print(number, flush=True)
"""


def test_what_was_claimed_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": ":".join(path for path in [*sys.path, str(Path(__file__).parent)] if path)}
    limits = Limits(max_entries=10**6, max_bytes=10**9, max_age_seconds=3600)
    claimed = 0
    for delay in (0.02, 0.05, 0.08):
        process = subprocess.Popen([sys.executable, "-c", HEAR_AND_DIE, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        claimed = max(claimed, int(lines[-1]) + 1)
        assert claimed <= len(Outbox(tmp_path, limits).waiting()) <= claimed + 1
