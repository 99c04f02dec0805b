"""What the tests of the PowerContext backend share: three servers, and a real server's recorded JSON.

Which server a test uses:

* ``powercontext_server``, a real PowerContext, for what it does with a request;
* ``powercontext_http``, pytest-httpserver, for a reply, a status, a header, a request count, or TLS::

      def test_…(powercontext_http: StartHTTP, …) -> None:
          server = powercontext_http()  # powercontext_http(READY) answers everything with it; tls=True: see powercontext_ca
          server.answer(PREPARE, error(503, "server_overloaded"), answer(prepared("Refunds are in cents.")))
          …
          assert [request.json["query"] for request in server.requests_to(PREPARE)] == ["refund", "refund"]

  The replies are in ``replies``: ``answer``, ``error``, ``captured``, ``prepared``, ``record``, ``remembered``, ``found``;
* ``powercontext_bytes``, the byte server, where bytes, timing or closing are the subject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings
from deerflow.agents.memory.backends.powercontext.settings.people import Binding

from .byte_server import ByteServer
from .replies import answer, prepared

if TYPE_CHECKING:
    from .http_server import HTTPPowerContext

OWNER = "0b6a2d0e-9d7f-4c55-8f0e-2f6a1c9d7e40"
SCOPE = "scp_4bn20avma1vbh7fc0rxawgxq24"
TOKEN = "t0ken-of-the-tests"

READY = answer(prepared("Refund amounts are integer cents."))

BuildManager = Callable[..., PowerContextMemoryManager]
StartHTTP = Callable[..., "HTTPPowerContext"]
StartBytes = Callable[..., ByteServer]
Configure = Callable[..., None]
RunDoctor = Callable[..., tuple[int, str]]

TOOL = "deerflow.agents.memory.backends.powercontext.remember_tool:install"
SET_UP = f'memory: {{manager_class: powercontext}}\nplugins: [{{use: "{TOOL}"}}]\n'
"""A config.yaml with the backend and its tools."""


def binding() -> Binding:
    """Return the binding of the one configured person."""
    [only] = load_settings().people.bindings
    return only
