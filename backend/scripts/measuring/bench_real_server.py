"""The part of ``bench.py`` that asks a real PowerContext server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
from parts import backend, in_threads
from powercontext_support import OWNER
from powercontext_support.real_server import RealServer
from report import percentile, table

from deerflow.agents.memory.backends.powercontext.tools.outcomes import AlreadySaved, Saved

PROJECTS = "order billing shipping catalog search checkout account returns pricing loyalty inventory gateway".split()
SUBJECTS = "refund invoice parcel index basket password label discount voucher stock timeout currency address report".split()
RULES = ("is reviewed by two people", "uses integer cents", "is deployed on Tuesdays", "keeps ninety days of history", "is in Go")


def memory(number: int, choice: random.Random) -> str:
    """Return a text like those people save; no two are the same."""
    project, subject, rule = choice.choice(PROJECTS), choice.choice(SUBJECTS), choice.choice(RULES)
    return f"{project.capitalize()} service convention: the {subject} module {rule}, as decided in ticket {project[:3].upper()}-{number}."


def request(text: str) -> str:
    """Return a first message of somebody who should be told of the memory ``text``."""
    words = text.split()
    return f"Hello, please change the {words[4]} module of the {words[0].lower()} service so that it logs less, and add a test."


def fill(server: RealServer, scope_id: str, texts: list[str]) -> None:
    """Store ``texts`` from four threads."""
    left = iter(texts)
    headers = {"Authorization": f"Bearer {server.token}"}

    def work(_number: int) -> None:
        with httpx.Client(base_url=server.base_url, trust_env=False, timeout=30.0, headers=headers) as client:
            for text in left:
                body = {"scope_id": scope_id, "kind": "convention", "text": text}
                client.post("/v1/memory/remember", json=body).raise_for_status()

    in_threads(4, work)


def times_ms(work: Callable[[str], object], texts: list[str], expected: Callable[[object], bool]) -> list[float]:
    """Return how long ``work`` took with each text; a result that is not as ``expected`` ends everything."""
    durations = []
    for text in texts:
        started = time.perf_counter()
        result = work(text)
        durations.append((time.perf_counter() - started) * 1000)
        if not expected(result):
            raise RuntimeError(f"the bench got {result!r} from a real server")
    return durations


def measure_real_server(folder: Path, executable: str, *, memories: int, calls: int, seed: int) -> str:
    """Recall from and save to a server that holds ``memories``, and return the table."""
    choice = random.Random(seed)
    texts = [memory(number, choice) for number in range(memories)]
    new = [memory(memories + number, choice) for number in range(calls)]
    requests = [request(text) for text in choice.choices(texts, k=calls)]
    home = folder / "server"
    home.mkdir()
    with RealServer(home, executable=executable) as server, ExitStack() as stack:
        where = {"scope_id": server.create_scope("bench"), "token": server.token}
        fill(server, where["scope_id"], texts)
        full, *_ = stack.enter_context(backend(server.base_url, recall_query="full", **where))
        focused, saver, settings = stack.enter_context(backend(server.base_url, recall_query="focused", **where))
        times_ms(lambda text: full.get_context(OWNER, query=text), requests[:5], bool)
        rows = {
            "recall, full": times_ms(lambda text: full.get_context(OWNER, query=text), requests, bool),
            "recall, focused": times_ms(lambda text: focused.get_context(OWNER, query=text), requests, bool),
            "save of a new text": times_ms(lambda text: saver.save(settings.people.bindings[0], "convention", text), new, _is_saved),
            "save of the same text again": times_ms(lambda text: saver.save(settings.people.bindings[0], "convention", text), new, _is_already_saved),
        }
    cells = [[name, f"{percentile(times, 0.5):.1f}", f"{percentile(times, 0.99):.1f}"] for name, times in rows.items()]
    return table(["on a real server", "median in ms", "p99 in ms"], cells)


def _is_saved(outcome: object) -> bool:
    return isinstance(outcome, Saved)


def _is_already_saved(outcome: object) -> bool:
    return isinstance(outcome, AlreadySaved)
