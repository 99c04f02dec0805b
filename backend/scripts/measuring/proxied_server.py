"""A little PowerContext behind a proxy that answers some requests itself, whether or not it passed them on. A part of ``fuzz_proxies.py``."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

from powercontext_support import SCOPE
from powercontext_support.byte_server import ByteServer, Peer, Request
from powercontext_support.replies import PREPARE, REMEMBER, SEARCH, Reply, answer, atomic, found, prepared, record, remembered
from proxy_replies import proxy_reply

PROXIED_SHARE = 0.3
CUT_SHARE = 0.3
CONTEXT = "Refund amounts are integer cents."

_WORD = re.compile(r"\w+")


class ProxiedServer:
    """Stores texts, and has one memory, ``art_1``, to correct and forget.

    Attributes:
        texts: How often each text was stored.
        memory: The texts of the one memory's revisions.
        proxied_writes: How many writes the proxy answered.
        writes: How many writes there were.
        always: Whether the proxy answers everything.
    """

    def __init__(self, chance: random.Random) -> None:
        self.texts: Counter[str] = Counter()
        self.memory = ["The depot opens at five."]
        self._state_version = 0
        self.proxied_writes = self.writes = 0
        self.always = False
        self.server = ByteServer(self.answer)
        self._chance = chance

    @property
    def forgotten(self) -> bool:
        """Whether the one memory is forgotten."""
        return self._state_version % 2 == 1

    def restore(self) -> None:
        """Put that memory into use, if it is not."""
        self._state_version += self.forgotten

    def answer(self, request: Request, peer: Peer) -> bytes | Reply | None:
        """Answer as PowerContext, or as a proxy: a whole reply, or one that breaks off."""
        writes = request.method == "PUT" or request.path.endswith((REMEMBER, "/lifecycle"))
        self.writes += writes
        if not self.always and self._chance.random() >= PROXIED_SHARE:
            return self._powercontext(request)
        if self._chance.random() < 0.5:
            self._powercontext(request)
        self.proxied_writes += writes
        reply = proxy_reply(self._chance.random())
        if self._chance.random() >= CUT_SHARE:
            return reply
        peer.send(reply[: self._chance.randrange(len(reply))])
        return None

    def _powercontext(self, request: Request) -> Reply:
        [reply] = [reply for end, reply in self._routes().items() if request.path.endswith(end) or (end == "/revisions/" and end in request.path)][:1]
        return reply(request)

    def _routes(self) -> dict[str, Callable[[Request], Reply]]:
        return {
            PREPARE: lambda request: answer(prepared(CONTEXT)),
            "/atomic-memory/search": lambda request: answer(atomic(CONTEXT)),
            SEARCH: self._search,
            REMEMBER: self._remember,
            "/state": lambda request: answer(self._state()),
            "/revisions/": lambda request: answer(self._revision(int(request.path.rpartition("/")[2]))),
            "/lifecycle": self._forget,
            "/art_1": self._correct,
        }

    def _search(self, request: Request) -> Reply:
        words = set(_WORD.findall(request.json()["query"]))
        return answer(found(*(record(text) for text in self.texts if set(_WORD.findall(text)) <= words)))

    def _remember(self, request: Request) -> Reply:
        self.texts[request.json()["text"]] += 1
        return answer(remembered(record(request.json()["text"])))

    def _state(self) -> dict[str, object]:
        artifact = {"family": "atomic-memory", "artifact_id": "art_1", "revision": len(self.memory)}
        return {"artifact": artifact, "state": "forgotten" if self.forgotten else "active", "state_version": self._state_version}

    def _revision(self, number: int) -> dict[str, object]:
        content = {"kind": "fact", "text": self.memory[number - 1]}
        return {"scope_id": SCOPE, "family": "atomic-memory", "artifact_id": "art_1", "revision": number, "content": content}

    def _forget(self, request: Request) -> Reply:
        self._state_version += not self.forgotten
        return answer({"records": [self._state()]})

    def _correct(self, request: Request) -> Reply:
        if request.headers["if-match"] != f'"revision:{len(self.memory)}"':
            return answer({"error": {"code": "revision_conflict", "message": "Server text.", "details": None}}, 412)
        self.memory.append(request.json()["content"]["text"])
        return answer(self._revision(len(self.memory)))
