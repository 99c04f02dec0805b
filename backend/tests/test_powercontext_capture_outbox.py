"""The outbox: durable before it is claimed, bounded, in order, for several processes, and honest about a bad disk."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from deerflow.agents.memory.backends.powercontext.capture.outbox import Heard, Limits, Outbox
from deerflow.agents.memory.backends.powercontext.capture.transcript import Said, Turn
from deerflow.agents.memory.backends.powercontext.errors import PowerContextOutboxError

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


def fails(folder: Path, *words: str, lasting: bool, busy_seconds: float = 0.1) -> None:
    outbox = Outbox(folder, LIMITS, busy_seconds=busy_seconds)
    with pytest.raises(PowerContextOutboxError) as caught:
        outbox.hear([heard("zebra")])
    assert caught.value.lasting is lasting
    assert all(word in str(caught.value) for word in ("powercontext/outbox.sqlite3", *words))
    assert not any(word in f"{caught.value!r} {caught.value.__cause__} {caught.value.__context__}" for word in ("zebra", "alice", str(folder)))


def test_a_locked_file_is_refused_for_now(tmp_path: Path) -> None:
    Outbox(tmp_path, LIMITS).hear([heard("one")])
    other = sqlite3.connect(file_in(tmp_path), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    fails(tmp_path, "locked", lasting=False)
    other.close()
    assert Outbox(tmp_path, LIMITS).hear([heard("one", "two")]) == {"queued": 1}


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be taken for one" * 40, b"\x00" * 8192])
def test_a_file_that_is_no_outbox_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file_in(tmp_path).parent.mkdir()
    file_in(tmp_path).write_bytes(content)
    fails(tmp_path, "move it away", lasting=True)
    assert file_in(tmp_path).read_bytes() == content


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = bytes([0xAB]) * (len(content) - 4096)
    path.write_bytes(content)


def test_a_damaged_file_is_refused_for_good(tmp_path: Path) -> None:
    Outbox(tmp_path, LIMITS).hear([heard("x" * 9000)])
    damage(file_in(tmp_path))
    fails(tmp_path, "damaged", "move it away", lasting=True)


def rewrite(path: Path, statements: Sequence[str]) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_another_versions_file_is_never_misread(tmp_path: Path) -> None:
    Outbox(tmp_path, LIMITS).hear([heard("one")])
    rewrite(file_in(tmp_path), ["PRAGMA user_version = 2"])
    fails(tmp_path, "version 2", lasting=True)


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    file_in(tmp_path).parent.mkdir()
    rewrite(file_in(tmp_path), ["CREATE TABLE entries (x)"])
    fails(tmp_path, "no outbox", lasting=True)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    file_in(tmp_path).parent.mkdir()
    file_in(tmp_path).symlink_to(tmp_path / "elsewhere")
    fails(tmp_path, "not a file of the Gateway's own", lasting=True)


def test_a_folder_that_cannot_be_made_is_refused_for_now(tmp_path: Path) -> None:
    (tmp_path / "powercontext").write_text("a file")
    fails(tmp_path, "make the folder writable", lasting=False)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused_for_now(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    fails(tmp_path, "make the folder writable", lasting=False)
    tmp_path.chmod(0o700)


FILL = """
import resource, sys
from pathlib import Path
from test_powercontext_capture_outbox import LIMITS, Outbox, PowerContextOutboxError, heard
outbox = Outbox(Path(sys.argv[1]), LIMITS)
outbox.hear([heard("one")])
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    outbox.hear([heard("x" * 150_000, thread="t2")])
except PowerContextOutboxError as error:
    print(error, error.lasting)
"""


def test_a_disk_without_room_is_refused_for_now_and_nothing_is_lost(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": ":".join(path for path in [*sys.path, str(Path(__file__).parent)] if path)}
    result = subprocess.run([sys.executable, "-c", FILL, str(tmp_path)], env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert "disk" in result.stdout
    assert result.stdout.rstrip().endswith("False")
    assert texts_in(Outbox(tmp_path, LIMITS)) == ["one"]
