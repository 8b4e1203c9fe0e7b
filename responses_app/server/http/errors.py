"""HTTP channel that checks the key before reading a body, and rejects requests with API errors."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import orjson
from twisted.web.http import HTTPChannel

from responses_app.access.api_keys import bearer
from responses_app.api_formats.errors import error_body
from responses_app.errors import ApiError, InternalError, PayloadTooLarge, RateLimited, TooSlow
from responses_app.observability import events
from responses_app.observability.records import ObservedRequest
from responses_app.runs.ids import new_id
from responses_app.server.http.unfinished import Charge

logger = logging.getLogger("responses.http")

Header = tuple[bytes, bytes]

# Maximum bytes of a body: for the API, and for other paths.
BODY_LIMIT: Final = 64 * 1024 * 1024
PAGE_BODY_LIMIT: Final = 1024 * 1024
# A rejected client may still be sending. So many bytes are dropped, until the client is silent for so many seconds.
# Closing at once would send a reset in place of the answer (RFC 9112 §9.6).
LINGER_BYTES: Final = 4 * BODY_LIMIT
LINGER_IDLE_S: Final = 5.0
# First bytes of a TLS handshake (RFC 8446 §5.1). No request begins with these.
TLS_HANDSHAKE: Final = b"\x16\x03"


def error(status: int, message: str) -> tuple[list[Header], bytes]:
    """Return headers and body of an error."""
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    body = orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}})
    return _headers(body, new_id("req_")), body


def _headers(body: bytes, request_id: str) -> list[Header]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    # As OpenAI's API names it, and as Anthropic's does.
    return [*headers, (b"x-request-id", request_id.encode()), (b"request-id", request_id.encode())]


def too_large(limit: int) -> PayloadTooLarge:
    """Return the error for a body over the limit. That of an upload is the limit of a file and 1 MiB for the form."""
    most = limit // 1024 // 1024
    file = f" A file may have up to {most - 1} MiB." if limit > BODY_LIMIT else ""
    return PayloadTooLarge(f"The body of your request is larger than {most} MiB.{file}")


class HttpChannel(HTTPChannel):  # type: ignore[misc]
    """HTTP connection. `factory.server` is the DaphneServer with the gate and the budget."""

    _refused = _expects_continue = False
    # Monotonic time at which the head of the current request was complete.
    _began = 0.0
    _dropped = 0
    # Parts of the body received during the look-up of the key; None at other times.
    _early: list[bytes] | None = None
    _looking_up: asyncio.Task[None] | None = None

    def __init__(self) -> None:
        super().__init__()
        # Monotonic time of the end of the last answer.
        self.idle_since = time.monotonic()

    # Head

    def dataReceived(self, data: bytes) -> None:
        """Refuse a TLS handshake at once, without a wait for the end of a line (overrides Twisted)."""
        if data.startswith(TLS_HANDSHAKE) and not self.requests:
            peer = getattr(self.transport.getPeer(), "host", "")
            logger.info("the client %s sent a TLS handshake to this port, which has no TLS: use http:// in its URL", peer)
            self._hang_up(HTTPStatus.BAD_REQUEST, "This port has no TLS. Use http:// in the URL of your client.")
        else:
            super().dataReceived(data)

    def checkPersistence(self, request: Any, version: bytes) -> bool:
        """Return False for the last request of the connection, as when the server is leaving (overrides Twisted)."""
        if self.factory.server.is_leaving and not _is_websocket(request):
            request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
            return False
        return bool(super().checkPersistence(request, version))

    def requestDone(self, request: Any) -> None:
        """Note the time (overrides Twisted)."""
        self.idle_since = time.monotonic()
        super().requestDone(request)

    def allHeadersReceived(self) -> None:
        """Admit the request before the body is read (overrides Twisted)."""
        self._began = time.monotonic()
        super().allHeadersReceived()
        if self.length != 0:
            self._admit()

    def _send100Continue(self) -> None:
        """Send no 100 yet: Twisted calls this for `Expect: 100-continue` before admission."""
        self._expects_continue = True

    def _admit(self) -> None:
        request, server = self.requests[-1], self.factory.server
        path = self._decoded_path()
        request.is_upload = server.gate.is_upload(self._command.decode("latin1"), path)
        request.is_keyless = not server.gate.is_api(path)
        if _is_websocket(request) or request.is_keyless:
            self._let_in(server.budget.of_address(self._client_address()), PAGE_BODY_LIMIT)
            return
        authorization = _authorization(request)
        account = server.gate.cached_account(authorization)
        if account is not None:
            self._let_in_key(account)
            return
        self._early = []
        self._networkProducer.pauseProducing()
        self._looking_up = asyncio.get_running_loop().create_task(self._look_up_key(authorization), name="key of a request")

    def _decoded_path(self) -> str:
        return unquote(self._path.partition(b"?")[0].decode("latin1"))

    async def _look_up_key(self, authorization: str) -> None:
        server = self.factory.server
        try:
            account = await server.gate.look_up(authorization)
        except ApiError as refusal:
            self.refuse(refusal)
        except Exception:
            logger.exception("a key could not be looked up")
            self.refuse(InternalError("The server had an error while processing your request."))
        else:
            self._let_in_key(account)
        self._go_on()

    def _go_on(self) -> None:
        """Process the buffered body and resume reading."""
        early, self._early, self._looking_up = self._early or [], None, None
        self._networkProducer.resumeProducing()
        for data in early:
            self.rawDataReceived(data)

    def _let_in_key(self, account: str) -> None:
        """Read the body of a client with a key. The body of an upload is collected in the folder of uploads."""
        request, server = self.requests[-1], self.factory.server
        if not request.is_upload:
            self._let_in(server.budget.of_key(account), BODY_LIMIT)
            return
        self._let_in(server.upload_budget.of_key(account), server.limits.upload)
        if not self._refused:
            request.collect_in(server.limits.upload_folder)

    def _let_in(self, charge: Charge, limit: int) -> None:
        """Read the body unless the length exceeds the limit."""
        request = self.requests[-1]
        request.charge, request.limit = charge, limit
        expects, self._expects_continue = self._expects_continue, False
        if self.length is not None and self.length > limit:
            self.refuse(too_large(limit))
        elif expects:
            super()._send100Continue()

    # Body

    def rawDataReceived(self, data: bytes) -> None:
        """Drop the body of a rejected request, and buffer the body during a look-up (overrides Twisted)."""
        if self._refused:
            self._drop(len(data))
        elif self._early is not None:
            self._early.append(data)
            self._networkProducer.pauseProducing()
        else:
            super().rawDataReceived(data)

    def allContentReceived(self) -> None:
        """Process the request unless answered already (overrides Twisted)."""
        if not self._refused:
            super().allContentReceived()

    def connectionLost(self, reason: Any) -> None:
        """Cancel the look-up of the key (overrides Twisted)."""
        if self._looking_up is not None:
            self._looking_up.cancel()
        super().connectionLost(reason)

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > LINGER_BYTES:
            self.forceAbortClient()

    # Rejections

    def refuse(self, refusal: ApiError) -> None:
        """Answer before the end of the body, and close the connection when the client stops sending."""
        if self._refused:
            return
        self._refused = True
        for request in self.requests:
            request.discard()
        self._answer(refusal)
        self._networkProducer.unregisterProducer()
        self.transport.loseWriteConnection()
        self.setTimeout(LINGER_IDLE_S)

    def refuse_slow(self) -> None:
        """Answer a client that sent the body too slowly."""
        self.refuse(TooSlow("The body of your request has not come in time. Send it again over a faster connection."))

    def lineLengthExceeded(self, line: bytes) -> Any:
        """Answer 431 to a header line over the limit (overrides Twisted)."""
        del line
        self._too_large()

    def _respondToBadRequestAndDisconnect(self) -> None:
        if self._receivedHeaderSize > self.totalHeadersSize:
            self._too_large()
        else:
            self._hang_up(HTTPStatus.BAD_REQUEST, "This is not a valid HTTP request.")

    def _too_large(self) -> None:
        most = self.totalHeadersSize // 1024
        message = f"The address and the headers of your request are larger than {most} KiB."
        self._hang_up(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)

    def _hang_up(self, status: HTTPStatus, message: str) -> None:
        headers, body = error(status, message)
        self.transport.write(_response(status, headers, body))
        self.loseConnection()
        events.request_ended(ObservedRequest("", "", status))

    def _answer(self, refusal: ApiError) -> None:
        request_id = new_id("req_")
        path = self._decoded_path() if hasattr(self, "_path") else ""
        self.transport.write(response_of(refusal, request_id, self._cors_headers(), path))
        logger.info("%s %d %s param=%s code=%s", request_id, refusal.status, refusal.message[:200], refusal.param, refusal.code)
        if self.requests and hasattr(self, "_path"):
            line = self._command.decode("latin1"), self._decoded_path()
            address = self._client_address()
            self.factory.server.gate.note_refusal(refusal, request_id, line, _authorization(self.requests[-1]), address)
            events.request_ended(
                ObservedRequest(*line, refusal.status, began=self._began, request_id=request_id, address=address)
            )

    def _client_address(self) -> str:
        """Return the address of the client of the current request, behind trusted proxies too."""
        request = self.requests[-1]
        forwarded_for = request.requestHeaders.getRawHeaders(b"x-forwarded-for") or []
        peer = str(getattr(request.client, "host", ""))
        address: str = self.factory.server.gate.client_address(peer, forwarded_for)
        return address

    def _cors_headers(self) -> list[Header]:
        """Return the headers that let a script of an allowed origin read the refusal."""
        origin = self.requests[-1].requestHeaders.getRawHeaders(b"origin") or [b""] if self.requests else [b""]
        path = self._decoded_path() if hasattr(self, "_path") else ""
        headers: list[Header] = self.factory.server.gate.cors_headers(path, origin[0].decode("latin1"))
        return headers


def _authorization(request: Any) -> str:
    headers = (request.requestHeaders.getRawHeaders(name) or [] for name in (b"authorization", b"x-api-key"))
    return bearer(*(b",".join(lines).decode("latin1") for lines in headers))


def _is_websocket(request: Any) -> bool:
    """Return True for a WebSocket handshake. HTTP/2 clients send `Upgrade: h2c` with any request."""
    upgrade = request.requestHeaders.getRawHeaders(b"upgrade") or [b""]
    return bool(upgrade[0].lower() == b"websocket")


def response_of(refusal: ApiError, request_id: str, cors: Sequence[Header] = (), path: str = "") -> bytes:
    """Return the encoded HTTP response of an error, in the API format of `path`, with the headers of all API responses."""
    body = orjson.dumps(error_body(path, refusal, request_id))
    more = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    standing = [(b"openai-version", b"2020-10-01"), (b"openai-processing-ms", b"0")]
    return _response(refusal.status, [*_headers(body, request_id), *standing, *more, *cors], body)


def overloaded(limit: int) -> bytes:
    """Return the response to a connection over the limit."""
    events.request_ended(ObservedRequest("", "", RateLimited.status))
    refusal = RateLimited(f"{limit} connections are open, which is the limit. Try again in a moment.", retry_after=1)
    return response_of(refusal, new_id("req_"))


def _response(status: int, headers: list[Header], body: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode()), *(b"%b: %b" % header for header in headers)]
    return b"\r\n".join([*lines, b"connection: close", b"", body])
