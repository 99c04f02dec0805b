"""Many people on one process, at the same time, while the network and the server fail: does anything of one reach another? ``make crowd`` runs it.

``bind`` gives everybody a Scope on a real server. Then recalls and all four tools run for all of them, for strangers, and
with other people's citations, through a relay that loses, cuts, spoils, delays and refuses. Every text carries a mark of
its owner. Looked at are every request that left, everything that came back to a caller, everything logged, and the store.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BACKEND / folder) for folder in ("packages/harness", "devhost", "tests", "scripts/measuring")]

from crowd_calls import ARTIFACT, MARK, SCOPE, STRANGERS, Crowd, Evidence, user  # noqa: E402
from powercontext_support.byte_server import Request  # noqa: E402
from powercontext_support.real_server import PrincipalServer, RealServer, find_executable  # noqa: E402
from powercontext_support.relay import Relay  # noqa: E402

from deerflow.agents.memory.backends.powercontext import bind  # noqa: E402
from deerflow.agents.memory.backends.powercontext.settings.loading import load_settings  # noqa: E402


def judge_requests(crowd: Crowd, requests: list[Request]) -> None:
    """Look at every request: the Scope, the token and the text have to be one person's."""
    for request in requests:
        body = request.body.decode("utf-8", "replace")
        scopes = set(SCOPE.findall(request.path)) | set(re.findall(r'"scope_id":"(scp_[0-9a-z]{26})"', body))
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if len(request.body) < int(request.headers.get("content-length", 0)):  # its time was over while it was sent
            continue
        people = {crowd.scopes.index(scope) for scope in scopes if scope in crowd.scopes}
        if len(people) != 1 or len(scopes) != 1:
            crowd.evidence.wrong.append(f"a request has not just one person's Scope ({request.method} {SCOPE.sub('…', request.path)}, {len(people)} of {len(scopes)})")
        elif {int(mark) for mark in MARK.findall(body)} - people:
            crowd.evidence.wrong.append("a request has another person's text")
        elif token != crowd.tokens[people.pop()]:
            crowd.evidence.wrong.append("a request has another person's token")


def judge_store(crowd: Crowd, server: RealServer) -> None:
    """Look at the store: each Scope has its owner's texts alone, and all that were saved and left alone."""
    for person, scope_id in enumerate(crowd.scopes):
        entries, cursor = [], None
        while True:
            body = {"scope_id": scope_id, "limit": 100, "include_inactive": True} | ({"cursor": cursor} if cursor else {})
            page = server.request("POST", "/v1/memory/entries/list", body).raise_for_status().json()
            entries += page["entries"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        wrong = crowd.evidence.wrong
        wrong += ["the store has a text in another person's Scope" for entry in entries if {int(mark) for mark in MARK.findall(entry["text"])} != {person}]
        active = {entry["text"] for entry in entries if entry["state"] == "active"}
        wrong += ["a saved text is gone" for text in crowd.kept.get(person, set()) if text not in active]
        foreign = crowd.evidence.shown.get(person, set()) - {entry["artifact"]["artifact_id"] for entry in entries}
        wrong += ["an answer has a citation that is not the caller's" for _ in foreign]


def judge_log(crowd: Crowd) -> None:
    """Look at every line: no text, id, Scope or token."""
    private = [*crowd.scopes, *set(crowd.tokens), *(user(number) for number in range(len(crowd.scopes) + STRANGERS))]
    for line in crowd.evidence.lines:
        if MARK.search(line) or ARTIFACT.search(line) or "ferry" in line or any(word in line for word in private):
            crowd.evidence.wrong.append("a log line has what is private")


def main() -> int:
    """Run it; return 0 only if nothing of anybody reached anybody else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--tokens", choices=("one", "each"), default="each", help="one token for all, or a token for each and a server that tells them apart")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    executable = find_executable()
    if executable is None:
        print("There is no powercontext command beside this Python: run `make install`.")
        return 2
    print(f"seed {options.seed}; {options.people} people, {options.threads} threads, {options.calls} calls, {options.tokens} token", flush=True)
    with tempfile.TemporaryDirectory(prefix="powercontext-crowd-") as name:
        folder = Path(name)
        principals = {f"token-of-principal-{number}-end": f"principal-{number}" for number in range(options.people)} if options.tokens == "each" else {}
        server = PrincipalServer(folder, executable=executable, principals=principals) if principals else RealServer(folder, executable=executable)
        with server, Relay(server.base_url) as relay:
            return run(server, relay, folder / "bindings.json", list(principals), options)


def run(server: RealServer, relay: Relay, file: Path, tokens: list[str], options: argparse.Namespace) -> int:
    """Bind everybody, make the calls and judge them."""
    for name in [name for name in os.environ if name.startswith("POWERCONTEXT_DEERFLOW_")]:
        del os.environ[name]
    os.environ |= {"POWERCONTEXT_DEERFLOW_BASE_URL": server.base_url, "POWERCONTEXT_DEERFLOW_BINDINGS_FILE": str(file), "POWERCONTEXT_DEERFLOW_TOKEN": server.token}
    for number in range(options.people):
        token_file = file.with_name("token")
        token_file.write_text(tokens[number] if tokens else "")
        with redirect_stdout(io.StringIO()):
            code = bind.main(["add", user(number), *(["--token-file", str(token_file)] if tokens else [])])
        assert code == 0, "bind failed"
    os.environ |= {"POWERCONTEXT_DEERFLOW_BASE_URL": relay.base_url, "POWERCONTEXT_DEERFLOW_REMEMBER_TIMEOUT_SECONDS": "2"}
    evidence = Evidence()
    backend_log = logging.getLogger("deerflow.agents.memory.backends.powercontext")
    backend_log.addHandler(evidence)
    backend_log.setLevel(logging.DEBUG)
    backend_log.propagate = False
    load_settings()
    crowd = Crowd(evidence, json.loads(file.read_text(encoding="utf-8"))["bindings"], server.token, options.seed)
    relay.plan = crowd.passage
    started = time.monotonic()
    crowd.run(options.calls, options.threads)
    took = time.monotonic() - started
    crowd.manager.close()
    time.sleep(2)  # what the server still had to do
    judge_requests(crowd, relay.requests)
    judge_store(crowd, server)
    judge_log(crowd)
    for call, count in sorted(evidence.calls.items()):
        print(f"{count:>6}  {call}")
    print(f"{len(relay.requests)} requests and {len(evidence.lines)} log lines in {took:.0f} s")
    for what, count in Counter(evidence.wrong).items():
        print(f"WRONG, {count} times: {what}")
    print("Nothing of anybody reached anybody else." if not evidence.wrong else "SOMETHING REACHED SOMEBODY ELSE, or was lost.")
    return 1 if evidence.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
