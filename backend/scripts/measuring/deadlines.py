"""How late recall, the check at start-up, saving and the doctor can be, whatever the server does. ``make deadlines`` runs it.

Each fault of the tests, and some on the way to the server, meets each operation with a limit of one second a step. Then
come 200 callers at once, a process that wants to end while a name look-up hangs, and strangers on a shared pool.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from deadline_faults import ALL_FAULTS, NOISY, unread
from parts import ProcessState, backend, in_threads
from powercontext_support import OWNER
from report import table
from shared_pool import MAX_RECALLS_SECONDS, MAX_WAIT_SECONDS, RECALLS, STUCK_SAVES, stranger_and_recalls

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.doctor.server_checks import check_service
from deerflow.agents.memory.backends.powercontext.errors import PowerContextError
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.loading import PowerContextSettings
from deerflow.agents.memory.backends.powercontext.tools.saving import Saver

LIMIT_SECONDS = 1.0
# A save looks up, writes and reads back. The doctor's questions, until one fails, share three times the limit of a recall.
PERMITTED_SECONDS = {"recall": LIMIT_SECONDS, "warm": LIMIT_SECONDS, "save": 3 * LIMIT_SECONDS, "write": LIMIT_SECONDS, "doctor": 3 * LIMIT_SECONDS}
MAX_LATE_SECONDS = 0.1
CALLERS = 200
# So many threads share two cores: the last to wake is late, not waiting.
MAX_CALLER_SECONDS = LIMIT_SECONDS + 0.4
MAX_EXIT_SECONDS = 1.0
AT_ONCE = 4
MAX_RUN_SECONDS = 300

# The longest there are, so that sending them can block.
QUERY = "😀" * 8192
TEXT = "é" * 4096

SETTINGS = {
    "recall_timeout_seconds": str(LIMIT_SECONDS),
    "remember_timeout_seconds": str(LIMIT_SECONDS),
    "recall_query": "full",
}

# "!" is printed before the last statement, so what comes behind it is the interpreter's end.
EXIT_PROBE = """
from parts import backend
from powercontext_support import OWNER
from powercontext_support.faults import hung_name_lookup
hung = hung_name_lookup()
with backend(hung.__enter__(), recall_timeout_seconds="0.2") as (manager, *_):
    assert manager.get_context(OWNER, query="refund") == ""
print("!", flush=True)
"""


@dataclass(frozen=True)
class Row:
    """The longest time each operation took under a fault, and what the saves came to."""

    fault: str
    seconds: dict[str, float]
    outcomes: set[str]

    @property
    def late_seconds(self) -> float:
        """How far the worst operation was over its time; negative if none was."""
        return max(self.seconds[operation] - PERMITTED_SECONDS[operation] for operation in self.seconds)

    def cells(self) -> list[str]:
        """Return the row of the table."""
        late = f"{self.late_seconds * 1000:.0f} ms" if self.late_seconds > 0 else "-"
        times = [f"{seconds:.2f}" for seconds in self.seconds.values()]
        return [self.fault, *times, " or ".join(sorted(self.outcomes)), late]


def operations(manager: PowerContextMemoryManager, saver: Saver, settings: PowerContextSettings) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    return {
        "recall": lambda: manager.get_context(OWNER, query=QUERY),
        "warm": manager.warm,
        "save": lambda: saver.save(settings.people.bindings[0], "fact", TEXT),
        "write": lambda: write(settings),
        "doctor": lambda: any(finding.what == "recall" for finding in check_service(settings)),
    }


def write(settings: PowerContextSettings) -> bool:
    """Write by itself: a save whose look-up fails does not get that far."""
    with suppress(PowerContextError):
        return bool(shared_client(settings).remember_memory(settings.people.bindings[0], "fact", TEXT, deadline=Deadline.after(LIMIT_SECONDS)))
    return False


def meet(fault: str, repeats: int) -> Row:
    """Let each operation meet ``fault``, one after the other, ``repeats`` times."""
    row = Row(fault, dict.fromkeys(PERMITTED_SECONDS, 0.0), set())
    with ALL_FAULTS[fault]() as place:
        for _ in range(repeats):
            with backend(place.base_url, proxy_url=place.proxy_url, **SETTINGS) as opened:
                for operation, call in operations(*opened).items():
                    started = time.monotonic()
                    result = call()
                    row.seconds[operation] = max(row.seconds[operation], time.monotonic() - started)
                    if operation == "save":
                        row.outcomes.add(type(result).__name__)
                    elif result:
                        raise RuntimeError(f"{operation} found something under the fault {fault!r}")
    return row


def meet_all(faults: list[str], repeats: int) -> list[Row]:
    """Return the rows of ``faults``: the noisy ones one by one, then the others, a few at a time."""
    rows = {fault: meet(fault, repeats) for fault in faults if fault in NOISY}
    quiet = [fault for fault in faults if fault not in NOISY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows |= dict(zip(quiet, pool.map(lambda fault: meet(fault, repeats), quiet), strict=True))
    return [rows[fault] for fault in faults]


def crowd() -> tuple[float, ProcessState]:
    """Recall in ``CALLERS`` threads from a silent server; return the longest time, and the state in the middle of it."""
    durations: list[float] = []
    states: list[ProcessState] = []
    with unread() as place, backend(place.base_url, recall_timeout_seconds=str(LIMIT_SECONDS)) as (manager, *_):

        def work(number: int) -> None:
            if number == CALLERS:  # not a caller: it looks on
                time.sleep(LIMIT_SECONDS / 2)
                states.append(ProcessState.now())
                return
            started = time.monotonic()
            if manager.get_context(OWNER, query="refund"):
                raise RuntimeError("a silent server was heard")
            durations.append(time.monotonic() - started)

        in_threads(CALLERS + 1, work)
    if len(durations) < CALLERS:
        raise RuntimeError("a caller did not come back")
    return max(durations), states[0]


def seconds_to_exit() -> float:
    """Return how long a process takes to end whose name look-up hangs."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    with subprocess.Popen([sys.executable, "-c", EXIT_PROBE], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "!\n":
                raise RuntimeError("the process that was to end did not start")
            started = time.monotonic()
            process.wait(10)
            return time.monotonic() - started
        except BaseException:
            process.kill()
            raise


def main() -> int:
    """Measure everything; return 0 only if nothing is later than it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ALL_FAULTS), help="these faults alone, with commas between them")
    parser.add_argument("--repeats", type=int, default=3, help="of each operation under each fault")
    arguments = parser.parse_args()
    faults = arguments.only.split(",")
    if unknown := [fault for fault in faults if fault not in ALL_FAULTS]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(ALL_FAULTS)}")
    faulthandler.dump_traceback_later(MAX_RUN_SECONDS, exit=True)
    started = time.monotonic()
    rows = meet_all(faults, arguments.repeats)
    longest, state = crowd()
    exit_seconds = seconds_to_exit()
    wait, recalls = stranger_and_recalls()
    latest = max(rows, key=lambda row: row.late_seconds)
    head = ["fault", *(f"{operation} in s" for operation in PERMITTED_SECONDS), "save says", "late"]
    print(table(head, [row.cells() for row in rows]))
    print(f"\n{len(rows)} faults, {arguments.repeats} times each: the longest times (a save and the doctor may take 3 s, the others 1 s)")
    print(f"latest: {max(0.0, latest.late_seconds) * 1000:.0f} ms over, under {latest.fault!r} (limit {MAX_LATE_SECONDS * 1000:.0f} ms)")
    print(f"{CALLERS} callers, silent server: longest {longest:.2f} s (limit {MAX_CALLER_SECONDS} s)")
    print(f"meanwhile: {state.threads} threads, {state.sockets - 1} sockets to the server")
    print(f"end of a process whose look-up hangs: {exit_seconds:.2f} s (limit {MAX_EXIT_SECONDS} s)")
    print(f"six threads, silent server: a stranger waited {wait:.2f} s beside {STUCK_SAVES} saves (limit {MAX_WAIT_SECONDS} s)", end="; ")
    print(f"{RECALLS} recalls took {recalls:.2f} s together (limit {MAX_RECALLS_SECONDS} s)")
    holds = latest.late_seconds <= MAX_LATE_SECONDS and longest <= MAX_CALLER_SECONDS and exit_seconds < MAX_EXIT_SECONDS and wait < MAX_WAIT_SECONDS and recalls < MAX_RECALLS_SECONDS
    print(f"{'Every limit holds.' if holds else 'TOO LATE.'} {time.monotonic() - started:.0f} s.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
