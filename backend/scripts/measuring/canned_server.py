"""The server of ``bench.py``: answers a search with three memories and all else with one recorded reply, as fast as Python can.

Prints the base URLs it listens on as JSON and ends when its standard input does.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import sys
import threading
from pathlib import Path

import parts  # noqa: F401 - puts powercontext_support on the path
from powercontext_support.replies import atomic

CAPTURED = Path(__file__).resolve().parents[2] / "tests/powercontext_support/captured/1.4.1/prepare_context_ready.json"

_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


FOUND = json.dumps(
    atomic(
        "Order service convention: refund and money amounts are integer cents, never floats.",
        "Order service: receipts are printed by the billing job every night.",
        "The payment gateway is owned by another team.",
    )
).encode()


def reply(body: bytes, *, keep_alive: bool) -> bytes:
    """Return ``body`` with a PowerContext server's headers, and ``Connection: close`` where it is to close."""
    head = [
        "HTTP/1.1 200 OK",
        "date: Mon, 30 Nov 2026 12:00:00 GMT",
        "server: uvicorn",
        f"content-length: {len(body)}",
        "content-type: application/json",
        "x-powercontext-request-id: 0123456789abcdef",
        *([] if keep_alive else ["connection: close"]),
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def converse(connection: socket.socket, prepared: bytes, found: bytes, keep_alive: bool) -> None:
    """Answer the requests of one connection; only the first if it is not kept."""
    pending = b""
    while True:
        while (end := pending.find(b"\r\n\r\n")) < 0 or len(pending) < end + 4 + _length(pending):
            data = connection.recv(65536)
            if not data:
                return
            pending += data
        answer = found if b"/search " in pending[: pending.index(b"\r\n")] else prepared
        pending = pending[end + 4 + _length(pending) :]
        connection.sendall(answer)
        if not keep_alive:
            return


def _length(request: bytes) -> int:
    found = _CONTENT_LENGTH.search(request)
    return int(found[1]) if found else 0


def listen(tls: ssl.SSLContext | None, *, keep_alive: bool) -> str:
    """Serve on a port of its own, in threads, and return the base URL."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    prepared, found = reply(CAPTURED.read_bytes().strip(), keep_alive=keep_alive), reply(FOUND, keep_alive=keep_alive)

    def serve(connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with tls.wrap_socket(connection, server_side=True) if tls else connection as stream:
                converse(stream, prepared, found, keep_alive)
        except OSError:  # the client went away
            connection.close()

    def accept() -> None:
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"


def main() -> None:
    """Listen four times: plain and TLS (with the certificate of the first argument), keeping connections and closing them."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[1])
    warm = {"warm plain": listen(None, keep_alive=True), "warm TLS": listen(tls, keep_alive=True)}
    cold = {"cold plain": listen(None, keep_alive=False), "cold TLS": listen(tls, keep_alive=False)}
    print(json.dumps(warm | cold), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
