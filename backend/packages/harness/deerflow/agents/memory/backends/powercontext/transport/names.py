"""The addresses of the server's name.

What a look-up or a dead address cost once is not paid again by every connection.
"""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import Future
from typing import Final

import httpcore

KEPT_SECONDS: Final = 60.0
"""So long a finished look-up serves alone. A name whose addresses do not answer is looked up again at once."""

STALE_SECONDS: Final = 600.0
"""So long it serves while a new one is under way, so that a slow look-up is waited for once and not every minute."""


class NameLookupError(httpcore.ConnectError):
    """The server's name has no address."""


class NameLookupTimeout(httpcore.ConnectTimeout):
    """The look-up of the server's name is not over; the server is not at fault."""


class Names:
    """Looks names up. Safe for any number of threads.

    Args:
        kept_seconds: How long a finished look-up serves without a new one.
    """

    def __init__(self, kept_seconds: float = KEPT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, int], Future[list[str]]] = {}
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}

    def addresses_of(self, host: str, port: int, seconds: float | None) -> list[str]:
        """Return the addresses of ``host``, the one that answered last first.

        A new look-up runs in a daemon thread: ``getaddrinfo`` cannot be interrupted, and one that hangs must not hold
        up an exit. There is at most one thread a name, and what it finds is kept, also if nobody waits for it any more.

        Args:
            host: The name.
            port: The port.
            seconds: How long to wait; ``None``: as long as it takes.

        Raises:
            NameLookupError: There is none.
            NameLookupTimeout: ``seconds`` are over.
        """
        key = (host, port)
        with self._lock:
            found_at, addresses = self._known.get(key, (0.0, []))
            age = time.monotonic() - found_at
            if addresses and age < self._kept_seconds:
                return list(addresses)
            lookup = self._under_way.get(key) or self._start(key)
            if addresses and age < STALE_SECONDS:
                return list(addresses)
        try:
            addresses = lookup.result(seconds)
        except TimeoutError:
            raise NameLookupTimeout from None
        if not addresses:
            raise NameLookupError
        return list(addresses)

    def answered(self, host: str, port: int, address: str) -> None:
        """Note that ``address`` answers, so that it is tried first from now on."""
        with self._lock:
            found_at, addresses = self._known.get((host, port), (0.0, []))
            if addresses and addresses[0] != address and address in addresses:
                self._known[host, port] = found_at, [address, *(other for other in addresses if other != address)]

    def forget(self, host: str, port: int) -> None:
        """Note that no address of ``host`` answers: it may have moved."""
        with self._lock:
            self._known.pop((host, port), None)

    def _start(self, key: tuple[str, int]) -> Future[list[str]]:
        lookup = self._under_way[key] = Future[list[str]]()
        try:
            threading.Thread(target=self._run, args=(key, lookup), name="powercontext-lookup", daemon=True).start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            del self._under_way[key]
            raise NameLookupError from None
        return lookup

    def _run(self, key: tuple[str, int], lookup: Future[list[str]]) -> None:
        addresses: list[str] = []
        try:
            found = socket.getaddrinfo(*key, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        except (OSError, UnicodeError):
            pass  # an empty list says it
        finally:
            with self._lock:
                del self._under_way[key]
                if addresses:
                    _, before = self._known.get(key, (0.0, []))
                    if before and before[0] in addresses:  # it answered last
                        addresses = [before[0], *(other for other in addresses if other != before[0])]
                    self._known[key] = time.monotonic(), addresses
            lookup.set_result(addresses)
