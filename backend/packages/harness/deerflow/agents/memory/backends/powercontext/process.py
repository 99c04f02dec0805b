"""What a process has once, shared by recall and tools: the settings and one client for the one server."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from .api.client import PowerContextClient
from .settings.loading import PowerContextSettings
from .transport.forking import in_forked_children


class _Shared:
    """The process's client: one, for settings never change; only tests and benches have several. A closed one is replaced."""

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
