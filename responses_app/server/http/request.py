"""Request of the HTTP server: counts the body, and passes the body of an upload on as a file."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from http import client as http_client
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from daphne.http_protocol import WebRequest
from twisted.web.http import NO_BODY_CODES

from responses_app.errors import InsufficientStorage
from responses_app.installation.data_dir import make_folder
from responses_app.observability import events
from responses_app.observability.records import ObservedRequest
from responses_app.server.http.errors import BODY_LIMIT, error, too_large
from responses_app.server.http.tcp_limits import ANSWER, BODY, HEAD, LINGER, LimitedConnection
from responses_app.server.http.unfinished import Charge, Full

logger = logging.getLogger("responses.http")


class HttpRequestHandler(WebRequest):  # type: ignore[misc]
    """Request with a counted body, rejected beyond the limit."""

    received = 0
    stage = HEAD
    limit = BODY_LIMIT
    charge: Charge | None = None
    is_upload = is_keyless = False
    content: Any
    upload: IO[bytes] | None = None

    def __init__(self, channel: Any, *arguments: Any) -> None:
        # Twisted would parse forms and answer 400 to an invalid form; the application parses bodies.
        super().__init__(channel, *arguments, parsePOSTFormSubmission=False)
        if isinstance(channel.transport, LimitedConnection):
            channel.transport.request_count += 1

    def gotLength(self, length: int | None) -> None:
        """Check the announced length of the body (overrides Twisted)."""
        self.stage = BODY
        super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        """Count a part of the body (overrides Twisted)."""
        if self.stage == LINGER:
            return
        self.received += len(data)
        if self.received > self.limit:
            self.channel.refuse(too_large(self.limit))
            return
        try:
            if self.charge is not None:
                self.charge.add(len(data))
        except Full as full:
            self.channel.refuse(full.answer)
            return
        try:
            super().handleContentChunk(data)
            # A later write of what is buffered would fail outside of this method.
            self.content.flush()
        except OSError as failed:
            self._refuse_full(failed)

    def collect_in(self, folder: Path | None) -> None:
        """Collect the body in a temporary file without a name in `folder`. Nothing has been received yet."""
        try:
            if folder is not None:
                make_folder(folder)
            self.content.close()
            self.content = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the request
        except OSError as failed:
            self._refuse_full(failed)

    def _refuse_full(self, failed: OSError) -> None:
        """Refuse a body that cannot be kept, as on a full disk."""
        logger.error("a body of a request cannot be kept: %s", failed)
        self.channel.refuse(InsufficientStorage(f"The server cannot keep the body of your request ({failed.strerror})."))

    def take_upload(self) -> IO[bytes]:
        """Return the body of an upload as a file, open until the end of the request. Daphne then passes an empty body on."""
        upload: IO[bytes] = self.content
        self.upload, self.content = upload, BytesIO()
        return upload

    def process(self) -> Any:
        """Pass the request to the application (overrides Daphne)."""
        self.stage = ANSWER
        done = super().process()
        # The application has the whole body; otherwise the spool file would exist until the end of the response.
        if self.upload is None:
            self._drop_body()
        return done

    def setResponseCode(self, code: int, message: bytes | None = None) -> None:
        """Set the status, with its phrase (overrides Twisted, which has no phrase for 422, 429 and others)."""
        super().setResponseCode(code, message or http_client.responses.get(code, "Unknown Status").encode())

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Send no body in answer to HEAD (overrides Daphne, which drops only the first part)."""
        if self.method == b"HEAD" and message.get("body"):
            message = {**message, "body": b""}
        super().handle_reply(message)

    def finish(self) -> None:
        """Close the body of an upload (overrides Daphne)."""
        super().finish()
        self._release()

    def discard(self) -> None:
        """Drop the body of a rejected request."""
        self.stage = LINGER
        self._drop_body()

    def connectionLost(self, reason: Any) -> None:
        """Release the body's charge (overrides Daphne)."""
        self._release()
        super().connectionLost(reason)

    def _drop_body(self) -> None:
        self._release()
        if self.content is not None:
            # A full disk refuses what is still buffered; the file is closed nevertheless.
            with suppress(OSError):
                self.content.close()

    def _release(self) -> None:
        if self.charge is not None:
            self.charge.release()
        if self.upload is not None:
            self.upload.close()

    # DirectWriter

    def can_write_now(self) -> bool:
        """Return True if the head of the response has been written, a body may follow, and the client reads."""
        if self.finished or self._disconnected or not self.startedWriting:
            return False
        return self.method != b"HEAD" and self.code not in NO_BODY_CODES and bool(self.channel.transport.keeps_up)

    def write_now(self, parts: Sequence[bytes]) -> None:
        """Write a piece of the body: a chunk (RFC 9112 §7.1), or bare bytes for HTTP/1.0."""
        size = sum(map(len, parts))
        self.sentLength += size
        self.channel.transport.writeSequence((b"%x\r\n" % size, *parts, b"\r\n") if self.chunked else parts)

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Answer with an API error instead of a page (overrides Daphne)."""
        del status_text
        if self.application_queue is None:
            # The application, which reports its requests, has not begun.
            events.request_ended(ObservedRequest("", "", status))
        headers, encoded = error(status, body)
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": encoded})
