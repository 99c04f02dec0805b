"""The server of ``soak.py``: mostly good answers, and faults in an order that the seed, the first argument, gives.

Below ``/held`` it answers well, but late. Prints the base URL as JSON and ends when its standard input does.
"""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import threading
from weakref import WeakSet

import parts  # noqa: F401 - puts powercontext_support on the path
from powercontext_support.byte_server import ByteServer, Peer, Request, always
from powercontext_support.faults import REPLIES, SCRIPTS
from powercontext_support.replies import PREPARE, REMEMBER, SEARCH, Reply, answer, atomic, found, prepared, record, remembered
from proxy_replies import proxy_reply

HELD_SECONDS = 0.3
FAULTS = SCRIPTS | {name: always(reply) for name, reply in REPLIES.items()}
# Of each hundred requests. About half of the slow ones come within the client's limit of 0.2 s.
SHARES = {"good": 76, "closed at reuse": 6, "proxy": 3, "slow": 4, "cut": 2, "reset": 2, "garbage": 1, "500": 2, "502": 1, "closed after request": 1, "not JSON": 1, "gzip": 1}
_CASE = re.compile(r"case\d+")


def memory_of(case: str) -> str:
    """Return the memory that is recalled for a request that names ``case``, and for no other."""
    return f"Refunds of {case} are integer cents."


def good(request: Request) -> Reply:
    """Return what PowerContext answers."""
    if request.path.endswith(REMEMBER):
        return answer(remembered(record(request.json()["text"], request.json()["kind"])))
    if request.path.endswith(SEARCH):
        return answer(found())
    [case, *_] = _CASE.findall(request.json()["query"])
    return answer(prepared(memory_of(case)) if request.path.endswith(PREPARE) else atomic(memory_of(case)))


class Schedule:
    """What happens to each request, in the order of their coming."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._served: WeakSet[socket.socket] = WeakSet()
        self.server = ByteServer(self.answer)

    def answer(self, request: Request, peer: Peer) -> bytes | Reply | None:
        """Do to ``request`` what its turn says."""
        if request.path.startswith("/held/"):
            peer.stopping.wait(HELD_SECONDS)
            return good(request)
        with self._lock:
            self.server.requests.clear()  # it would keep them all
            [fate] = self._random.choices(list(SHARES), list(SHARES.values()))
            delay_seconds, amount = self._random.uniform(0.05, 0.4), self._random.random()
            reused = peer.connection in self._served
            self._served.add(peer.connection)
        if fate == "closed at reuse" and reused:
            return None
        if fate == "proxy":
            return proxy_reply(amount)
        if fate == "slow":
            peer.stopping.wait(delay_seconds)
        return good(request) if fate in ("good", "slow", "closed at reuse") else FAULTS[fate](request, peer)


def main() -> None:
    """Serve until the standard input ends."""
    with Schedule(int(sys.argv[1])).server as server:
        print(json.dumps(server.base_url), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
