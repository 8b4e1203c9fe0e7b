"""What is no HTTP, or too much of it, answered in the API's words: Twisted says nothing, or nothing but 400, and hangs up."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from twisted.web.http import HTTPChannel

from responses_app.runs.ids import mint

Header = tuple[bytes, bytes]


def error(status: int, message: str) -> tuple[list[Header], bytes]:
    """The headers and the body of an error (responses-api.md §1.10)."""
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    body = orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return [*headers, (b"x-request-id", mint("req_").encode())], body


class Channel(HTTPChannel):  # type: ignore[misc]
    """Reads requests from a connection."""

    def lineLengthExceeded(self, line: bytes) -> Any:
        del line
        self._too_large()

    def _respondToBadRequestAndDisconnect(self) -> None:
        if self._receivedHeaderSize > self.totalHeadersSize:
            self._too_large()
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "This is not a valid HTTP request.")

    def _too_large(self) -> None:
        most = self.totalHeadersSize // 1024
        message = f"The address and the headers of your request are larger than {most} KiB."
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        headers, body = error(status, message)
        lines = [b"HTTP/1.1 %d %b" % (status, status.phrase.encode()), *(b"%b: %b" % header for header in headers)]
        self.transport.write(b"\r\n".join([*lines, b"connection: close", b"", body]))
        self.loseConnection()
