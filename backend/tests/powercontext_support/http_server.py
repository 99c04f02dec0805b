"""pytest-httpserver on loopback, with the few words the tests of this backend need. Import it late: DeerFlow may not have it."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from itertools import chain, repeat
from threading import Lock

from pytest_httpserver import HTTPServer, URIPattern
from werkzeug import Request, Response

from .replies import Reply

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request is of no use in a failed test's output


class AnyPath(URIPattern):
    """Matches every path."""

    def match(self, uri: str) -> bool:
        """Return ``True``."""
        return True


class HTTPPowerContext(HTTPServer):
    """Answers what a test says. One request a connection: werkzeug closes each, so reuse belongs to the byte server.

    All of pytest-httpserver's own methods (``expect_request`` and so on) work too.
    A request that nothing was said about gets 500 and fails the test at its end.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(host="127.0.0.1", ssl_context=tls, threaded=True)

    @property
    def base_url(self) -> str:
        """The URL to configure."""
        return self.url_for("").rstrip("/")

    @property
    def requests(self) -> list[Request]:
        """What was asked, in the order of the answers."""
        return [request for request, _ in self.log]

    def requests_to(self, path: str) -> list[Request]:
        """Return the requests to ``path``; their JSON is ``request.json``."""
        return [request for request in self.requests if request.path == path]

    def answer(self, path: str | None, *replies: Reply) -> None:
        """Answer requests to ``path`` (``None``: to any) with each of ``replies`` in turn, with the last one from then on."""
        queue, lock = chain(replies, repeat(replies[-1])), Lock()

        def next_reply(request: Request) -> Reply:
            with lock:
                return next(queue)

        self.decide(path, next_reply)

    def decide(self, path: str | None, choose: Callable[[Request], Reply]) -> None:
        """Answer requests to ``path`` (``None``: to any) with what ``choose`` returns, on a thread of the request's own."""

        def respond(request: Request) -> Response:
            reply = choose(request)
            return Response(reply.body, reply.status, reply.all_headers())

        self.expect_request(AnyPath() if path is None else path).respond_with_handler(respond)

    def thread_target(self) -> None:
        """Serve, and notice a stop within milliseconds instead of half a second."""
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)
