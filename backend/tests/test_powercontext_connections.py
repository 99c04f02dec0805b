"""Connections: kept while that is safe, never so long or in such a state that one request could get another's answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import threading
import time
import warnings

import httpcore
import pytest
from powercontext_support import OWNER, READY, BuildManager, StartBytes
from powercontext_support.byte_server import Peer, Request, always
from powercontext_support.replies import answer, error, prepared

from deerflow.agents.memory.backends.powercontext.transport.network import DeadlineBackend

pytest_plugins = ("powercontext_support.fixtures",)


def echo(request: Request, peer: Peer | None = None) -> bytes:
    """Answer with the query itself."""
    return answer(prepared(request.json()["query"])).raw()


def test_a_kept_connection_is_used_again(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(always(READY))
    manager = powercontext_manager(server.base_url)
    for _ in range(3):
        assert manager.get_context(OWNER, query="refund") != ""
    assert server.connections == 1


def test_a_connection_that_idled_for_four_seconds_is_not_used_again(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(always(READY))
    manager = powercontext_manager(server.base_url)
    manager.get_context(OWNER, query="refund")
    time.sleep(3.9)
    assert manager.get_context(OWNER, query="refund") != ""
    assert server.connections == 2


def test_the_connection_of_a_failed_call_is_not_used_again(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    answers = iter([error(500, "internal_error"), READY])
    server = powercontext_bytes(lambda request, peer: next(answers))
    manager = powercontext_manager(server.base_url, recall_query="full")
    assert manager.get_context(OWNER, query="refund") == ""
    assert manager.get_context(OWNER, query="refund") != ""
    assert server.connections == 2


STALE = answer(prepared("stale")).raw()


@pytest.mark.parametrize(
    "surplus",
    [STALE, b"\r\n", b"JUNK\r\n", b"HTTP/1.1 200 OK\r\n"],
    ids=["a whole reply", "a line end", "junk", "a reply's beginning"],
)
def test_bytes_behind_a_reply_are_never_the_next_answer(surplus: bytes, powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    manager = powercontext_manager(powercontext_bytes(lambda request, peer: echo(request) + surplus).base_url)
    assert [manager.get_context(OWNER, query=query) for query in ("one", "two", "three")] == ["one", "two", "three"]


def test_a_reply_longer_than_it_says_is_never_the_next_answer(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    body = json.dumps(prepared("x")).encode()
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    server = powercontext_bytes(lambda request, peer: chunked + STALE)
    manager = powercontext_manager(server.base_url)
    assert [manager.get_context(OWNER, query="q") for _ in range(3)] == ["x", "x", "x"]


def test_interim_replies_do_no_harm(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(lambda request, peer: b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + echo(request))
    manager = powercontext_manager(server.base_url)
    assert [manager.get_context(OWNER, query=query) for query in ("one", "two")] == ["one", "two"]


def test_a_head_in_many_pieces_keeps_the_connection(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    def drip(request: Request, peer: Peer) -> bytes:
        peer.drip(echo(request)[:-1], seconds_between=0.0002)
        return echo(request)[-1:]

    server = powercontext_bytes(drip)
    manager = powercontext_manager(server.base_url)
    assert [manager.get_context(OWNER, query=query) for query in ("one", "two")] == ["one", "two"]
    assert server.connections == 1


def test_a_forked_child_has_connections_of_its_own(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    server = powercontext_bytes(echo)
    manager = powercontext_manager(server.base_url)
    manager.get_context(OWNER, query="before")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, and the scripted server is one
        child = os.fork()
    if child == 0:
        os.write(writer, manager.get_context(OWNER, query="child").encode())
        os._exit(0)
    assert manager.get_context(OWNER, query="parent") == "parent"
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"child"
    assert server.connections == 2
    os.close(reader)
    os.close(writer)


def test_forked_children_recall_whatever_the_parents_threads_hold(powercontext_manager: BuildManager, powercontext_bytes: StartBytes) -> None:
    manager = powercontext_manager(powercontext_bytes(echo).base_url, recall_timeout_seconds="4")
    done = threading.Event()

    def recall_until_done() -> None:
        while not done.is_set():
            manager.get_context(OWNER, query="parent")

    threads = [threading.Thread(target=recall_until_done) for _ in range(20)]  # some always queue for one of the 16 connections
    for thread in threads:
        thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    signal.alarm(10)  # ends a child that hangs
                    os._exit(0 if manager.get_context(OWNER, query="child") == "child" else 1)
                assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_deadline_that_passes_before_the_handshake_closes_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stream = DeadlineBackend().connect_tcp("127.0.0.1", listener.getsockname()[1])
        peer, _ = listener.accept()
        with peer:
            with pytest.raises(httpcore.ConnectTimeout):
                stream.start_tls(ssl.create_default_context(), timeout=time.monotonic() - 1)
            peer.settimeout(10)
            assert peer.recv(1) == b""
