"""Recording proxy: forwards a client's requests to a server, and records each response with the tokens and broken rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

from responses_app.protocol.conformance.sse import blocks
from responses_app.protocol.conformance.validator import StreamValidator

SETTLE_S = 10.0
NOT_FORWARDED = frozenset({"host", "connection", "content-length", "accept-encoding", "transfer-encoding"})
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """Answer to one request for a response. `response` is {} without any, `violations` are rules that the stream breaks."""

    status: int
    response: dict[str, Any]
    is_stream: bool = False
    violations: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """The reason why the response has not completed, or None."""
        error = self.response.get("error") or {}
        if self.status >= 400:
            return f"HTTP {self.status}: {error.get('message', 'no error message')}"
        if reason := (self.response.get("incomplete_details") or {}).get("reason"):
            return f"the response ended incomplete: {reason}"
        return f"the response failed: {error.get('message')}" if error else None

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens by the response's usage."""
        usage = self.response.get("usage") or {}
        return usage.get("input_tokens", 0), usage.get("output_tokens", 0)


class Recorder:
    """Recording proxy on a free port, in front of the server at `url`."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._changed = threading.Condition()
        self._open = 0
        self._exchanges: list[Exchange] = []
        self.upstream = url
        self.http = httpx2.Client(timeout=timeout_s)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[Recorder]:
        """Run the proxy for as long as the block lasts."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self.http.close()

    def take(self, limit_s: float = SETTLE_S) -> list[Exchange]:
        """Wait for open requests, at most `limit_s` seconds, and return the exchanges."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open, limit_s)
            return list(self._exchanges)

    @contextmanager
    def request(self) -> Iterator[list[Exchange]]:
        """Count a request as open while the block lasts, and record the exchanges that the block adds to the list."""
        exchanges: list[Exchange] = []
        with self._changed:
            self._open += 1
        try:
            yield exchanges
        finally:
            with self._changed:
                self._open -= 1
                self._exchanges += exchanges
                self._changed.notify_all()


def _handler(recorder: Recorder) -> type[BaseHTTPRequestHandler]:
    class RecordingHandler(BaseHTTPRequestHandler):
        """Handler that forwards a request and closes the connection behind the answer."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Forward the request."""
            with recorder.request() as exchanges, suppress(ConnectionError):
                try:
                    self.forward(exchanges)
                except httpx2.HTTPError as error:
                    exchanges.append(
                        Exchange(502, {"error": {"message": f"no answer of the server: {error or type(error).__name__}"}})
                    )

        do_POST = do_GET

        def forward(self, exchanges: list[Exchange]) -> None:
            """Forward the request; add the exchange to `exchanges` once the answer was sent as a whole."""
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_FORWARDED}
            with recorder.http.stream(
                self.command, recorder.upstream + self.path, content=body, headers={**headers, "Accept-Encoding": "identity"}
            ) as answer:
                self.start_answer(answer)
                sent = bytearray()
                for chunk in answer.iter_raw():
                    sent += chunk
                    self.wfile.write(chunk)
            if self.command == "POST" and self.path.partition("?")[0].endswith("/responses"):
                exchanges.append(exchange(answer.status_code, answer.headers.get("content-type", ""), bytes(sent)))

        def start_answer(self, answer: httpx2.Response) -> None:
            """Send the status and the headers of the answer."""
            self.send_response(answer.status_code)
            for name in ("content-type", "x-request-id", "retry-after"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write no log."""

    return RecordingHandler


def exchange(status: int, content_type: str, body: bytes) -> Exchange:
    """Make the exchange of an answer that has arrived as a whole."""
    if content_type.startswith("text/event-stream"):
        return _streamed(status, body)
    try:
        decoded = json.loads(body)
    except ValueError:
        return Exchange(status, {"error": {"message": "the body is not JSON"}})
    return Exchange(status, decoded if isinstance(decoded, dict) else {})


def _streamed(status: int, body: bytes) -> Exchange:
    validator, response, violations = StreamValidator(), dict[str, Any](), list[str]()
    for block in blocks([body]):
        violations += map(str, validator.feed_block(block))
        event = None if block.done else block.event()
        if isinstance(event, dict) and event.get("type") in TERMINAL:
            response = event["response"]
    violations += map(str, validator.close())
    return Exchange(status, response, is_stream=True, violations=violations)


def calls(exchanges: Sequence[Exchange]) -> list[list[tuple[str, str]]]:
    """List the function calls of each response: names and arguments."""
    outputs = (exchange.response.get("output") or [] for exchange in exchanges)
    return [[(item["name"], item["arguments"]) for item in output if item["type"] == "function_call"] for output in outputs]
