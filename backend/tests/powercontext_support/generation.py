"""A generation model that a test plays on loopback: it makes a memory of what each user wrote, and of nothing else."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class GenerationModel:
    """Speaks OpenAI's chat API as far as PowerContext uses it.

    Attributes:
        evidence: The contents that the model was shown, in order.
    """

    def __init__(self) -> None:
        self.evidence: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(model.complete(request["messages"][-1]["content"])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> GenerationModel:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def server_settings(self, schedule_seconds: int) -> dict[str, str]:
        """Return the variables with which a PowerContext server uses this model, by itself every so often."""
        return {
            "POWERCONTEXT_SERVER_INFERENCE_GENERATION_MODEL": "openai-chat:played-model",
            "POWERCONTEXT_SERVER_INFERENCE_GENERATION_BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            "OPENAI_API_KEY": "played",
            "POWERCONTEXT_SERVER_RUNTIME_SCHEDULE_SECONDS": str(schedule_seconds),
        }

    def complete(self, prompt: str) -> dict[str, Any]:
        """Answer ``prompt``: candidates for evidence, nothing new for a comparison, a word for the probe."""
        try:
            asked = json.loads(prompt)
        except ValueError:
            asked = {}
        return {
            "id": "played",
            "object": "chat.completion",
            "created": 0,
            "model": "played-model",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self._answer(asked)}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }

    def _answer(self, asked: Any) -> str:
        evidence = asked.get("evidence") if isinstance(asked, dict) else None
        if not evidence:
            return "ok"
        if set(asked) != {"evidence"}:  # a candidate beside memories that are like it
            created = {"action": "create", "compared_ids": [], "target_ids": [], "evidence_ids": [evidence[0]["evidence_id"]], "reason": "played"}
            return json.dumps(created | {"content": {"kind": "fact", "text": evidence[0]["content"]["content"]}})
        shown = [(item["evidence_id"], item["content"]["content"], item["content"].get("metadata") or {}) for item in evidence]
        self.evidence += [content for _, content, _ in shown]
        candidates = [{"kind": "fact", "text": content, "evidence_ids": [name]} for name, content, metadata in shown if metadata.get("role") == "user"]
        return json.dumps({"candidates": candidates})
