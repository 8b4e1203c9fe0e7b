"""Server with the route `/v1/embeddings`, as vLLM and OpenAI have it, for words of a small vocabulary."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VOCABULARY = ("fox", "bread", "night")
# Words with the same meaning.
SYNONYMS = {"vulpine": "fox", "loaf": "bread"}


class EmbeddingsServer(ThreadingHTTPServer):
    """`requests` are the bodies; `answer` replaces the answer, with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.answer: tuple[int, bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(body)
        server.headers.append(self.headers.get("Authorization", ""))
        data = [{"object": "embedding", "index": n, "embedding": embedding(text)} for n, text in enumerate(body["input"])]
        status, content = server.answer or (200, json.dumps({"object": "list", "data": data[::-1]}).encode())
        self.send_response(status if self.path == "/v1/embeddings" else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def embedding(text: str) -> list[float]:
    """Count the words of the vocabulary; the last number is the same for all texts."""
    words = [SYNONYMS.get(word.strip(".?").lower(), word.strip(".?").lower()) for word in text.split()]
    return [float(sum(word.startswith(one) for word in words)) for one in VOCABULARY] + [0.1]


@contextmanager
def embeddings_server() -> Iterator[EmbeddingsServer]:
    """Serve in a thread."""
    with EmbeddingsServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
