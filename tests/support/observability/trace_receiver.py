"""Collector of traces on loopback: receives spans by OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


class TraceReceiver:
    """Received spans, and the names of the services."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.url = ""

    def add(self, body: bytes) -> None:
        """Add the spans of a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = [one.value.string_value for one in resource.resource.attributes if one.key == "service.name"]
            self.services.update(names)
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        """Return the spans with a name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Run a collector."""
    receiver = TraceReceiver()

    class PostHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.add(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_arguments: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), PostHandler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()
