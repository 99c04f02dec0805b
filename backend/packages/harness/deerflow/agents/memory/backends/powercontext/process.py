"""What a process has once, shared by recall and tools: the settings and one client for the one server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from .api.client import PowerContextClient
from .settings.loading import PowerContextSettings
from .transport.forking import in_forked_children


class _Shared:
    """The process's client: one, for settings never change; only tests and benches have several.

    A closed one is replaced.
    """

    def __init__(self) -> None:
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._clients: WeakKeyDictionary[PowerContextSettings, PowerContextClient] = WeakKeyDictionary()

    def client(self, settings: PowerContextSettings) -> PowerContextClient:
        with self._lock:
            client = self._clients.get(settings)
            if client is None or client.closed:
                client = self._clients[settings] = PowerContextClient(settings)
            return client


_shared = _Shared()


def shared_client(settings: PowerContextSettings) -> PowerContextClient:
    """Return the process's client for ``settings``, which recall and tools share. No network."""
    return _shared.client(settings)


class PerClient:
    """Something that a client has once, made at first need, and a process has one client.

    It must not hold on to the client.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._things: WeakKeyDictionary[PowerContextClient, Any] = WeakKeyDictionary()
        self._start()
        in_forked_children(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()

    def of(self, client: PowerContextClient) -> Any:
        """Return that of ``client``."""
        with self._lock:
            thing = self._things.get(client)
            if thing is None:
                thing = self._things[client] = self._make()
            return thing
