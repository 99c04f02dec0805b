"""An OpenAI-like ``/v1/embeddings`` on loopback, from a static model whose weights are in its wheel: wordllama, 256 dimensions.

Prints its base URL as JSON and ends when its standard input does.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def load() -> Any:
    """Return the model; nothing is downloaded."""
    import wordllama  # type: ignore[import-not-found, unused-ignore]

    # The tokenizer is in the wheel, but in a folder of another name than it is looked for in.
    return wordllama.WordLlama.load(config="l2_supercat", dim=256, disable_download=True, cache_dir=Path(wordllama.__file__).parent)


class Embeddings(BaseHTTPRequestHandler):
    """Answers each request with the vectors of its texts."""

    protocol_version = "HTTP/1.1"
    model: Any = None
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Answer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        with self.lock:
            vectors = [[float(number) for number in vector] for vector in self.model.embed(texts, norm=True)]
        packed = asked.get("encoding_format") == "base64"
        shown = [base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else vector for vector in vectors]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(shown)]
        body = json.dumps({"object": "list", "data": data, "model": asked.get("model"), "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until the standard input ends."""
    Embeddings.model = load()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps(f"http://127.0.0.1:{server.server_port}/v1"), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
