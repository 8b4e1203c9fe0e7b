"""HTTP server that receives webhooks and answers with the statuses that a test sets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.http_server import SilentHandler, http_server, serving


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    """Request that the receiver has got."""

    body: bytes
    headers: dict[str, str]


@dataclass(slots=True)
class WebhookReceiver:
    """Received requests, and the statuses of the next answers; the last status is repeated."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    received: list[ReceivedWebhook] = field(default_factory=list)
    # Answers wait until the event is set.
    released: threading.Event = field(default_factory=threading.Event)

    def next_status(self) -> int:
        """Return the status of the next answer."""
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextmanager
def webhook_receiver(statuses: Sequence[int] = (200,), *, silent: bool = False) -> Iterator[WebhookReceiver]:
    """Run a receiver on a free port of 127.0.0.1. A `silent` receiver answers when `released` is set."""
    receiver = WebhookReceiver(statuses=list(statuses))
    if not silent:
        receiver.released.set()

    class Handler(SilentHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(ReceivedWebhook(body, {name.lower(): value for name, value in self.headers.items()}))
            receiver.released.wait()
            status = receiver.next_status()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(http_server(Handler)) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        try:
            yield receiver
        finally:
            receiver.released.set()
