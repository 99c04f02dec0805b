"""What the audit does to the network and to the server while saves and recalls go on."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable

from powercontext_support.byte_server import Request
from powercontext_support.real_server import RealServer
from powercontext_support.relay import Passage
from proxy_replies import proxy_reply


class Troubles:
    """Harms half of all requests, kills the server every few seconds, and locks its database now and then."""

    def __init__(self, server: RealServer, seed: int) -> None:
        self.server = server
        self.restarts = 0
        self.locks = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._kill), threading.Thread(target=self._hold_the_database)]

    def start(self) -> None:
        """Begin with the kills and locks."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End them; the server runs afterwards."""
        self._done.set()
        for thread in self._threads:
            thread.join()

    def chance(self) -> float:
        """Return a number from 0 to 1, the next of the seed's."""
        with self._lock:
            return self._random.random()

    def passage(self, _request: Request) -> Passage:
        """Say what happens to a request on its way."""
        harm, amount = self.chance(), self.chance()
        if harm < 0.5:
            return Passage(close_if_reused=amount < 0.5)
        if harm < 0.58:
            return Passage(request=False)
        if harm < 0.7:
            return Passage(reply_bytes=int(amount * 600))
        if harm < 0.82:
            return Passage(delay_seconds=1.5 * amount)
        if harm < 0.9:
            return Passage(spoil=True)
        return Passage(lie=proxy_reply(amount)) if harm < 0.95 else Passage(instead=proxy_reply(amount))

    def _kill(self) -> None:
        down_seconds = 0.0
        while not self._done.wait(5.0 + 5.0 * self.chance() + 2 * down_seconds):  # up most of the time, also on a slow machine
            began = time.monotonic()
            self.server.stop(kill=True)
            try:
                self.server.start()
            except RuntimeError:  # a busy machine, or a locked database, makes a start last; without a server the comparison fails
                self.server.start()
            down_seconds = time.monotonic() - began
            self.restarts += 1

    def _hold_the_database(self) -> None:
        while not self._done.wait(3.0 + 3.0 * self.chance()):
            try:
                database = sqlite3.connect(self.server.folder / "powercontext.db", timeout=0.5, isolation_level=None)
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:  # the server is writing, or starting
                continue
            self._done.wait(0.5 + 1.5 * self.chance())
            database.execute("ROLLBACK")
            database.close()
            self.locks += 1


def cutting_at(offset: int) -> Callable[[Request], Passage]:
    """Return a plan that cuts the reply to a write at ``offset``, and harms nothing else."""
    writes = ("/remember", "/lifecycle", "/revise", "/retire")
    return lambda request: Passage(reply_bytes=offset) if request.method == "PUT" or request.path.endswith(writes) else Passage()
