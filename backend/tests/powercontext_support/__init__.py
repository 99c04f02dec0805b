"""What the tests of the PowerContext backend share: a scripted server, a real one, and a real server's recorded JSON."""

from __future__ import annotations

from collections.abc import Callable

from deerflow.agents.memory.backends.powercontext import PowerContextMemoryManager

from .scripted_server import ScriptedServer, json_reply, prepared

OWNER = "0b6a2d0e-9d7f-4c55-8f0e-owner"
SCOPE = "scp_4bn20avma1vbh7fc0rxawgxq24"
TOKEN = "t0ken-of-the-tests"

READY = json_reply(200, prepared("Refund amounts are integer cents."))

BuildManager = Callable[..., PowerContextMemoryManager]
StartScripted = Callable[..., ScriptedServer]
Configure = Callable[..., None]
