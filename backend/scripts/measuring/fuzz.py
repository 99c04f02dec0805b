"""Feeds mutated replies and settings to everything that parses them. ``make fuzz`` runs it.

Recorded replies of real servers are changed at random and read as every kind of reply; some also go through a socket.
Whatever comes out is our own error, or a value of which all that is checked still holds. Replies that a proxy wrote meet
every call (``fuzz_proxies.py``). Settings of the environment are changed in the same way.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from fuzz_proxies import fuzz_proxies
from parts import backend
from powercontext_support import OWNER
from powercontext_support.byte_server import ByteServer, Peer, Request
from powercontext_support.replies import Reply

from deerflow.agents.memory.backends.powercontext.api.listing_models import ArtifactList, MemoryList
from deerflow.agents.memory.backends.powercontext.api.memory_models import AtomicSearchReply, EntryReply, LifecycleReply, MemoryEntry, MemoryManifest, MemoryPage, MemoryRevision, MemoryState
from deerflow.agents.memory.backends.powercontext.api.models import ErrorReply, PreparedContext, Remembered, Response, Scope, SearchReply, SourceAccepted
from deerflow.agents.memory.backends.powercontext.api.server_models import Capabilities, Readiness, ServerInfo, Stats
from deerflow.agents.memory.backends.powercontext.deadline import Deadline
from deerflow.agents.memory.backends.powercontext.errors import PowerContextConfigurationError, PowerContextError, PowerContextResponseError
from deerflow.agents.memory.backends.powercontext.process import shared_client
from deerflow.agents.memory.backends.powercontext.settings.bindings_file import parse
from deerflow.agents.memory.backends.powercontext.settings.loading import VARIABLES, load_settings, reset_settings

CAPTURED = Path(__file__).resolve().parents[2] / "tests" / "powercontext_support" / "captured"
MODELS: tuple[type[Response], ...] = (
    *(PreparedContext, Readiness, ServerInfo, Capabilities, Scope, Remembered, SearchReply, ErrorReply, Stats, SourceAccepted),
    *(AtomicSearchReply, MemoryState, LifecycleReply, MemoryRevision, MemoryEntry, EntryReply, MemoryManifest, MemoryPage, MemoryList, ArtifactList),
)
TOKENS = [b"null", b"true", b"-1", b"1e999", b"NaN", b'""', b"[]", b"{}", b'"\\ud800"', b"\xff", b"\x00", b"\r\n\r\n", b"0\r\n", b'"schema"', b'"content"', b'"records"', b'"entry"']
GOOD = {
    "base_url": "https://powercontext.example.com:8443/memory",
    "owner_user_id": OWNER,
    "scope_id": "scp_4bn20avma1vbh7fc0rxawgxq24",
    "token": "t0ken",
    "max_bytes": "8000",
    "recall_query": "focused",
    "recall_timeout_seconds": "2.0",
    "remember_timeout_seconds": "5.0",
    "tools": "remember,recall",
    "capture": "user",
    "capture_max_days": "30",
}
BINDINGS = b'{"bindings": [{"owner_user_id": "u-1", "scope_id": "scp_1", "token": "secret-token"}, {"owner_user_id": "u-2", "scope_id": "scp_2", "shared": true}]}'


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return ``data`` with one to four changes: a byte, a piece cut, doubled or moved, a token put in."""
    for _ in range(chance.randint(1, 4)):
        start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        piece = data[start:end]
        data = data[:start] + chance.choice([b"", piece * 2, piece[::-1], bytes([chance.randrange(256)]), chance.choice(TOKENS)]) + data[end:]
    return data


def check(body: bytes, tally: Counter[str]) -> None:
    """Read ``body`` as every kind of reply. Anything but our error, or content that is not what it claims to be, is raised."""
    for model in MODELS:
        try:
            read = model.parse("fuzz", body)
        except PowerContextResponseError as error:
            if error.__context__ is not None or error.__cause__ is not None:
                raise AssertionError("a foreign error hangs on ours") from error
            tally["refused"] += 1
            continue
        tally["accepted"] += 1
        if isinstance(read, PreparedContext):
            assert len((read.content or "").encode()) == read.content_bytes, "a context of another length"
            assert (read.status == "ready") == (read.content is not None), "a status that does not fit"
        if isinstance(read, Remembered):
            assert read.memory is not None or not read.changed, "a change without a memory"


def fuzz_replies(bodies: list[bytes], count: int, chance: random.Random) -> Counter[str]:
    """Check ``count`` mutated bodies."""
    tally: Counter[str] = Counter()
    for _ in range(count):
        check(mutate(chance.choice(bodies), chance), tally)
    return tally


def fuzz_the_wire(bodies: list[bytes], count: int, chance: random.Random) -> Counter[str]:
    """Let a question, past the circuit breaker, meet ``count`` mutated HTTP replies; it has to return text or nothing, in time."""
    tally: Counter[str] = Counter()

    def answer(_request: Request, peer: Peer) -> None:
        peer.send(mutate(Reply(200, chance.choice(bodies)).raw(), chance))

    with ByteServer(answer) as server, backend(server.base_url) as (_, _, settings):
        [binding] = settings.people.bindings
        for _ in range(count):
            started = time.monotonic()
            context = ""
            with suppress(PowerContextError):
                context = shared_client(settings).prepare_context(binding, "refund", deadline=Deadline.after(0.3))
            assert time.monotonic() - started < 0.4, "a recall that was late"
            assert len(context.encode()) <= 8000, "a context over its budget"
            tally["recalled" if context else "nothing"] += 1
    return tally


def fuzz_settings(count: int, chance: random.Random) -> Counter[str]:
    """Load ``count`` mutated environments."""
    tally: Counter[str] = Counter()
    for _ in range(count):
        values = dict(GOOD)
        name = chance.choice(list(values))
        values[name] = mutate(values[name].encode(), chance).replace(b"\0", b"").decode("utf-8", "surrogateescape")
        os.environ |= {variable: values[setting] for variable, setting in VARIABLES.items() if setting in values}
        reset_settings()
        try:
            load_settings()
            tally["accepted"] += 1
        except PowerContextConfigurationError as error:
            assert error.__context__ is None, "a foreign error hangs on ours"
            assert len(values[name]) < 12 or values[name] not in str(error), "a value in the message"
            tally["refused"] += 1
    return tally


def report(what: str, tally: Counter[str]) -> None:
    """Print what came of ``what``."""
    print(f"{what}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.items())), flush=True)


def fuzz_bindings(count: int, chance: random.Random) -> Counter[str]:
    """Read ``count`` mutated bindings files."""
    tally: Counter[str] = Counter()
    for _ in range(count):
        entries, faults = parse(mutate(BINDINGS, chance), token_needed=True)
        assert "secret-token" not in "".join(faults), "a value in the message"
        assert faults or all(entry.token for entry in entries), "an entry without the token it needs"
        tally["refused" if faults else "accepted"] += 1
    return tally


def main() -> int:
    """Fuzz; anything unexpected is raised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=120_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    bodies = [path.read_bytes() for path in sorted(CAPTURED.glob("*/*.json"))]
    contexts = [path.read_bytes() for path in sorted(CAPTURED.glob("*/prepare_context_ready.json"))]
    started = time.monotonic()
    report(f"{arguments.replies} mutated replies, read as each of the models", fuzz_replies(bodies, arguments.replies, chance))
    report(f"{arguments.replies // 40} mutated contexts through a socket", fuzz_the_wire(contexts, arguments.replies // 40, chance))
    report(f"{arguments.replies // 40} calls through a proxy that answers itself", fuzz_proxies(arguments.replies // 40, chance))
    report(f"{arguments.replies // 20} mutated environments", fuzz_settings(arguments.replies // 20, chance))
    report(f"{arguments.replies // 20} mutated bindings files", fuzz_bindings(arguments.replies // 20, chance))
    print(f"Nothing but our errors, and nothing accepted that is not what it claims. {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
