"""The connections to the one configured server: bounded, and handed out in the order of asking."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import Final

import httpcore

from ..deadline import Deadline
from .endpoint import Endpoint
from .forking import in_forked_children
from .network import DeadlineBackend

# PowerContext 1.4.1 closes an idle connection after 5.0 s; a request that meets the closing one is lost.
KEEPALIVE_EXPIRY_SECONDS: Final = 3.5
# DeerFlow recalls from up to 32 threads. More connections would only queue in the server, which is one process.
MAX_CONNECTIONS: Final = 16


class Connections:
    """At most ``MAX_CONNECTIONS`` connections, each lent to one exchange at a time. Safe for any number of threads.

    Each is an httpcore pool of one, so httpcore never queues: its queue grants the whole limit again to a request that
    lost a race for an idle connection, and so can wait twice as long as it may.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.closed = False
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._network = DeadlineBackend()
        self._lock = threading.Lock()
        self._idle: list[httpcore.ConnectionPool] = []
        self._waiting: deque[Future[httpcore.ConnectionPool]] = deque()
        self._lent = 0

    def acquire(self, deadline: Deadline) -> httpcore.ConnectionPool:
        """Lend a connection, the most recently used one if there is a choice. The caller gives it to ``release``.

        Raises:
            httpcore.PoolTimeout: None came free before ``deadline``.
        """
        with self._lock:
            if self._lent < MAX_CONNECTIONS:
                connection = self._idle.pop() if self._idle else self._open()
                self._lent += 1
                return connection
            turn: Future[httpcore.ConnectionPool] = Future()
            self._waiting.append(turn)
        try:
            return turn.result(deadline.left())
        except TimeoutError:
            if turn.cancel():
                raise httpcore.PoolTimeout from None
            return turn.result()  # handed over at this very moment, so it has to go back through ``release``
        except BaseException:  # Ctrl-C
            if not turn.cancel():
                self.release(turn.result())
            raise

    def release(self, connection: httpcore.ConnectionPool) -> None:
        """Take a connection back, and lend it to the caller that has waited longest."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(connection)
                    return
            self._lent -= 1
            if not self.closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections; a lent one closes when it comes back. Idempotent."""
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _open(self) -> httpcore.ConnectionPool:
        proxy = self._endpoint.proxy
        if proxy is None:
            return httpcore.ConnectionPool(
                ssl_context=self._endpoint.tls,
                max_connections=1,
                keepalive_expiry=KEEPALIVE_EXPIRY_SECONDS,
                network_backend=self._network,
            )
        return httpcore.HTTPProxy(
            proxy_url=httpcore.URL(
                scheme=proxy.url.raw_scheme,
                host=proxy.url.raw_host,
                port=proxy.url.port,
                target=b"/",
            ),
            proxy_auth=proxy.raw_auth,
            ssl_context=self._endpoint.tls,
            max_connections=1,
            keepalive_expiry=KEEPALIVE_EXPIRY_SECONDS,
            network_backend=self._network,
        )
