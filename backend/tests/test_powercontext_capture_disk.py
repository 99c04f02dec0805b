"""The outbox on a bad disk: each trouble is named with its cure, nothing queued is lost, and no file of anybody else is touched."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_powercontext_capture_outbox import LIMITS, file_in, heard, texts_in

from deerflow.agents.memory.backends.powercontext.capture.outbox import Outbox
from deerflow.agents.memory.backends.powercontext.errors import PowerContextOutboxError


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
from test_powercontext_capture_disk import LIMITS, Outbox, PowerContextOutboxError, heard
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
