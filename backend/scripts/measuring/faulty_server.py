"""The server of ``soak.py``: mostly good answers, and faults in an order that the seed, the first argument, gives.

Below ``/held`` it answers well, but late. Prints the base URL as JSON and ends when its standard input does.
"""

from __future__ import annotations

import json
import random
import sys
import threading

import parts  # noqa: F401 - puts powercontext_support on the path
from powercontext_support import READY
from powercontext_support.byte_server import ByteServer, Peer, Request, always
from powercontext_support.faults import REPLIES, SCRIPTS
from powercontext_support.replies import Reply

HELD_SECONDS = 0.3
FAULTS = SCRIPTS | {name: always(reply) for name, reply in REPLIES.items()}
# Of each hundred requests. About half of the slow ones come within the client's limit of 0.2 s.
SHARES = {"good": 84, "slow": 4, "cut": 2, "reset": 2, "garbage": 2, "500": 2, "502": 1, "closed after request": 1, "not JSON": 1, "gzip": 1}


class Schedule:
    """What happens to each request, in the order of their coming."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.server = ByteServer(self.answer)

    def answer(self, request: Request, peer: Peer) -> bytes | Reply | None:
        """Do to ``request`` what its turn says."""
        if request.path.startswith("/held/"):
            peer.stopping.wait(HELD_SECONDS)
            return READY
        with self._lock:
            self.server.requests.clear()  # it would keep them all
            [fate] = self._random.choices(list(SHARES), list(SHARES.values()))
            delay_seconds = self._random.uniform(0.05, 0.4)
        if fate == "slow":
            peer.stopping.wait(delay_seconds)
        return READY if fate in ("good", "slow") else FAULTS[fate](request, peer)


def main() -> None:
    """Serve until the standard input ends."""
    with Schedule(int(sys.argv[1])).server as server:
        print(json.dumps(server.base_url), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
