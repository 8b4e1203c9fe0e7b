"""HTTP servers of tests, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

AnyServer = TypeVar("AnyServer", bound=ThreadingHTTPServer)


class SilentHandler(BaseHTTPRequestHandler):
    """Handler that prints no line for a request."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def http_server(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """Bind a server to a free port of the loopback interface."""
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)


@contextmanager
def serving(server: AnyServer) -> Iterator[AnyServer]:
    """Answer requests for as long as the block lasts."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
