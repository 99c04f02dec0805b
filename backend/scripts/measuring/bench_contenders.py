"""The ways to ask for a recall that ``bench.py`` compares, all with the same request to the same server."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx
from parts import backend
from powercontext.client import PowerContextClient
from powercontext.http import PrepareContextRequest
from powercontext_support import OWNER, SCOPE, TOKEN

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.recall.request import Request

PATH = "/v1/context/prepare"
SEARCH_PATH = f"/v1/scopes/{SCOPE}/artifacts/atomic-memory/search"
REQUEST = """Please look at the refund endpoint of the order service. A customer who returns two of three items is refunded for all three,
and the total on the receipt is off by a cent now and then. Find out how refund amounts are computed, fix it, and add a test.

```
FAILED tests/test_refunds.py::test_partial_refund - AssertionError: assert 2999 == 2998.9999999999995
```
Do not touch the payment gateway, and keep the answer short."""
PAYLOAD = {
    "scope_id": SCOPE,
    "query": REQUEST,
    "max_bytes": 8000,
    "assembly": {"format": "markdown", "sections": [{"family": "memory", "limit": 6}]},
}
SEARCH = {"query": " ".join(Request.read(REQUEST).words), "mode": "text", "limit": 50, "admission": {"lexical_coverage": 0, "lexical_min_matched_terms": 1}}

Call = Callable[[], object]


@dataclass(frozen=True)
class Contender:
    """A way to recall.

    Attributes:
        name: As in the table.
        run: Recalls as often as it is told, and returns how many seconds each took.
        share: Of the calls the others make; less than one for what is slow.
    """

    name: str
    run: Callable[[int], list[float]]
    share: float = 1.0


RAW, HTTPX, HTTPX_TWICE = "raw socket", "`httpx.Client.post(...).json()`", "the same twice: search, prepare"
FULL, FOCUSED, AWAIT = "`get_context`, full", "`get_context`, focused", "`await aget_context`, focused"
LOOP_THREAD, RUN = "PowerContext's client, loop thread", "PowerContext's client, `asyncio.run`"

BESIDE = {FOCUSED: HTTPX_TWICE, AWAIT: HTTPX_TWICE}
"""What sends the same requests; ``HTTPX`` for the others."""


def timed(call: Call) -> Callable[[int], list[float]]:
    """Return a function that times each ``call``; one without a result ends everything, for it was not a recall."""

    def run(calls: int) -> list[float]:
        durations = []
        for _ in range(calls):
            started = time.perf_counter()
            result = call()
            durations.append(time.perf_counter() - started)
            if not result:
                raise RuntimeError("a call of the bench recalled nothing")
        return durations

    return run


class RawSocket:
    """Sends prepared bytes and reads a reply of known length: the floor for a client in Python."""

    def __init__(self, url: str) -> None:
        parsed = httpx.URL(url)
        self._address = (parsed.host, parsed.port or 443)
        self._tls = ssl.create_default_context() if parsed.scheme == "https" else None
        self._connection: socket.socket | None = None
        body = json.dumps(PAYLOAD).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: {parsed.host}:{parsed.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._request = head.encode() + body

    def call(self) -> bytes:
        """Return the reply's body."""
        connection, self._connection = self._connection or self._connect(), None
        connection.sendall(self._request)
        reply = b""
        while b"\r\n\r\n" not in reply:
            reply += connection.recv(65536)
        head, _, body = reply.partition(b"\r\n\r\n")
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < size:
            body += connection.recv(65536)
        if b"connection: close" in head:
            connection.close()
        else:
            self._connection = connection
        return body

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._tls.wrap_socket(connection, server_hostname=self._address[0]) if self._tls else connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


@contextmanager
def httpx_call(url: str, path: str = PATH, payload: Mapping[str, object] = PAYLOAD) -> Iterator[Call]:
    """Yield what a plain user of httpx would write."""
    tls = httpx.create_ssl_context() if url.startswith("https:") else False
    with httpx.Client(verify=tls, trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield lambda: client.post(url + path, json=payload).json()


@contextmanager
def recall_call(url: str, recall_query: str) -> Iterator[Call]:
    """Yield our recall."""
    with backend(url, recall_query=recall_query) as (manager, *_):
        yield lambda: manager.get_context(OWNER, query=REQUEST)


def _awaited(runner: asyncio.Runner, manager: PowerContextMemoryManager) -> Callable[[int], list[float]]:
    async def run(calls: int) -> list[float]:
        durations = []
        for _ in range(calls):
            started = time.perf_counter()
            context = await manager.aget_context(OWNER, query=REQUEST)
            durations.append(time.perf_counter() - started)
            if not context:
                raise RuntimeError("a call of the bench recalled nothing")
        return durations

    return lambda calls: runner.run(run(calls))


async def _prepare(client: PowerContextClient) -> str | None:
    return (await client.prepare_context(PrepareContextRequest.model_validate(PAYLOAD))).content


@contextmanager
def loop_thread_call(url: str) -> Iterator[Call]:
    """Yield PowerContext's own asynchronous client as a synchronous caller has to drive it: by a loop in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    client = PowerContextClient(url, token=TOKEN)
    yield lambda: asyncio.run_coroutine_threadsafe(_prepare(client), loop).result()
    asyncio.run_coroutine_threadsafe(client.aclose(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def run_call(url: str) -> Call:
    """Return the simpler way to drive that client, which has to build it anew: its connections belong to the loop."""

    async def once() -> str | None:
        async with PowerContextClient(url, token=TOKEN) as client:
            return await _prepare(client)

    return lambda: asyncio.run(once())


@contextmanager
def contenders(url: str) -> Iterator[list[Contender]]:
    """Yield all ways to recall from ``url``, ready to run."""
    with ExitStack() as stack:
        raw = RawSocket(url)
        stack.callback(raw.close)
        runner = stack.enter_context(asyncio.Runner())
        manager, *_ = stack.enter_context(backend(url, recall_query="focused"))
        prepare, search = (stack.enter_context(httpx_call(url, *what)) for what in ((PATH, PAYLOAD), (SEARCH_PATH, SEARCH)))
        yield [
            Contender(RAW, timed(raw.call)),
            Contender(HTTPX, timed(prepare)),
            Contender(HTTPX_TWICE, timed(lambda: (search(), prepare()))),
            Contender(FULL, timed(stack.enter_context(recall_call(url, "full")))),
            Contender(FOCUSED, timed(stack.enter_context(recall_call(url, "focused")))),
            Contender(AWAIT, _awaited(runner, manager)),
            Contender(LOOP_THREAD, timed(stack.enter_context(loop_thread_call(url)))),
            Contender(RUN, timed(run_call(url)), share=0.1),
        ]
