"""Daphne's WebSocket with HTTP answers to upgrades, response headers, all close codes, and limits against floods."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import reactor

from responses_app.errors import InvalidRequest, MethodNotAllowed
from responses_app.runs.ids import new_id
from responses_app.server.http.errors import BODY_LIMIT, LINGER_BYTES, response_of
from responses_app.server.http.tcp_limits import LINGER_LONGEST
from responses_app.server.http.unfinished import Charge, Full

# Messages and bytes that may wait for the application; at a limit, reading from the client pauses.
MAX_WAITING_MESSAGES: Final = 64
MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
BUFFER_POLL_S: Final = 0.02
FIN, TEXT, BINARY = 0x80, 0x1, 0x2
# Close codes "message too big" and "try again later" (RFC 6455 §7.4.1 and the IANA registry).
TOO_BIG, TRY_AGAIN = 1009, 1013
MESSAGE_TOO_BIG: Final = f"A message may have up to {BODY_LIMIT // 1024 // 1024} MiB."
# Maximum bytes from a client before the answer to its handshake.
MOST_EARLY: Final = 64 * 1024
# ASGI extension `websocket.http.response`: the application may answer a handshake with HTTP.
EXTENSIONS: Final[dict[str, Any]] = {"websocket.http.response": {}}


class WebSocket(WebSocketProtocol):  # type: ignore[misc]
    """WebSocket connection. `since` is the start of the incomplete message, `received` the number of bytes so far."""

    since: float | None = None
    received = 0
    _denial: dict[str, Any] | None = None
    _charge: Charge | None = None
    # Bytes received before the handshake's answer; None before the handshake's head and after the answer.
    _early: bytes | None = None
    _dropped = 0

    def onConnect(self, request: Any) -> Any:
        """Begin the handshake (overrides Daphne)."""
        self._sizes: deque[int] = deque()
        self._held = False
        self._early = b""
        return super().onConnect(request)

    def failHandshake(self, reason: str, code: int = 400, responseHeaders: Any = None) -> None:
        """Answer an invalid handshake with an error object (overrides autobahn, whose answer has no body)."""
        is_method = code == HTTPStatus.METHOD_NOT_ALLOWED
        if not is_method and code != HTTPStatus.BAD_REQUEST:
            super().failHandshake(reason, code, responseHeaders)
            return
        message = f"The WebSocket handshake is invalid: {reason}."
        refusal = MethodNotAllowed(message) if is_method else InvalidRequest(message)
        refusal.headers |= {"Allow": "GET"} if is_method else dict(responseHeaders or ())
        self.wasNotCleanReason = reason
        self.sendData(response_of(refusal, new_id("req_")))
        self.dropConnection(abort=False)

    def onClose(self, wasClean: bool, code: int | None, reason: str) -> None:
        """Notify the application (overrides Daphne), which has not met a connection whose handshake was invalid."""
        if hasattr(self, "server"):
            super().onClose(wasClean, code, reason)

    # From the client

    def dataReceived(self, data: bytes) -> None:
        """Limit the bytes before the handshake's answer (overrides autobahn)."""
        if self._early is not None:
            if len(self._early) + len(data) <= MOST_EARLY:
                self._early += data
            else:
                self.dropConnection(abort=True)
            return
        if self.failedByMe:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.dropConnection(abort=True)
        super().dataReceived(data)

    def onMessageBegin(self, isBinary: bool) -> None:
        """Begin to count a message (overrides autobahn)."""
        self.since, self.received = time.monotonic(), 0
        super().onMessageBegin(isBinary)

    def onMessageFrameData(self, payload: bytes) -> None:
        """Count the parts of a message (overrides autobahn)."""
        if self.failedByMe:
            return
        self.received += len(payload)
        try:
            if self._charge is not None:
                self._charge.add(len(payload))
        except Full as full:
            self._give_up(TRY_AGAIN, str(full))
            return
        super().onMessageFrameData(payload)

    def onMessageEnd(self) -> None:
        """Finish a message (overrides autobahn)."""
        self._end_message()
        super().onMessageEnd()

    def connectionLost(self, reason: Any) -> None:
        """Release the message's charge (overrides autobahn)."""
        self._end_message()
        super().connectionLost(reason)

    def _open_charge(self) -> Charge:
        """Open a charge for the key of this connection, which is cached since the handshake."""
        budget, account = self.server.budget, self.server.gate.cached_account(self.request.headers.get("authorization", ""))
        if account is None:
            return budget.of_address(str(getattr(self.transport.getPeer(), "host", "")))  # type: ignore[no-any-return]
        return budget.of_key(account)  # type: ignore[no-any-return]

    def _end_message(self) -> None:
        self.since = None
        if self._charge is not None:
            self._charge.release()

    def _max_message_size_exceeded(self, msg_size: int, max_msg_size: int, reason: str) -> None:
        """Close with code 1009 and a reason; autobahn drops the connection, which clients see as 1006."""
        del msg_size, max_msg_size, reason
        self._give_up(TOO_BIG, MESSAGE_TOO_BIG)

    def _give_up(self, code: int, reason: str) -> None:
        """Close with a code, and drop all data until the client answers the close."""
        self.failedByMe = True
        self._end_message()
        self.frame_data: list[bytes] = []
        self.message_data: list[bytes] = []
        self.utf8validateIncomingCurrentMessage = False
        self.closeHandshakeTimeout = LINGER_LONGEST
        self.sendCloseFrame(code=code, reasonUtf8=reason.encode()[:120])

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        """Queue a message, and pause reading at the limit (overrides Daphne)."""
        super().onMessage(payload, isBinary)
        self._sizes.append(len(payload))
        if not self._held and self._full:
            self._held = True
            self.transport.pauseProducing()
            self._soon()

    @property
    def _full(self) -> bool:
        waiting = self.application_queue.qsize()
        while len(self._sizes) > waiting:
            self._sizes.popleft()
        return waiting > MAX_WAITING_MESSAGES or (waiting > 0 and sum(self._sizes) > MAX_WAITING_BYTES)

    def _look(self) -> None:
        if self.state != self.STATE_OPEN:
            return
        if self._full:
            self._soon()
        else:
            self._held = False
            self.transport.resumeProducing()

    def _soon(self) -> None:
        reactor.callLater(BUFFER_POLL_S, self._look)

    # From the application

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Handle messages that Daphne does not support; pass others to Daphne."""
        known = _REPLIES.get(message["type"])
        if known is None:
            super().handle_reply(message)
        else:
            known(self, message)

    def accept(self, message: dict[str, Any]) -> None:
        """Accept the handshake with the application's headers."""
        headers: dict[str, list[str]] = {}
        for name, value in message.get("headers") or ():
            headers.setdefault(name.decode("latin1"), []).append(value.decode("latin1"))
        if self.state == self.STATE_CONNECTING:
            self._charge = self._open_charge()
            self.handshake_deferred.callback((message.get("subprotocol"), headers))
            del self.handshake_deferred
            early, self._early = self._early, None
            if early:
                self.dataReceived(early)

    def deny(self, message: dict[str, Any]) -> None:
        """Start an HTTP answer instead of the upgrade."""
        self._denial = message

    def denied(self, message: dict[str, Any]) -> None:
        """Send the body of the HTTP answer and close."""
        if self._denial is None or self.state != self.STATE_CONNECTING:
            return
        status, body = self._denial["status"], message.get("body", b"")
        headers = [*self._denial.get("headers", ()), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        head = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
        self.sendData(head + b"".join(b"%b: %b\r\n" % pair for pair in headers) + b"\r\n" + body)
        self.wasClean = True
        self.dropConnection(abort=False)
        self.server.protocol_disconnected(self)

    def send(self, message: dict[str, Any]) -> None:
        """Send a text or binary frame. A frame after the close is dropped.

        autobahn formats log messages for every frame, a third of the time of sending.
        """
        if self.state == self.STATE_OPEN:
            text = message.get("text")
            self.transport.writeSequence(_frame(BINARY, message["bytes"]) if text is None else _frame(TEXT, text.encode()))

    # DirectWriter

    def can_write_now(self) -> bool:
        """Return True if the connection is open and the client reads."""
        return self.state == self.STATE_OPEN and self.transport.keeps_up  # type: ignore[no-any-return]

    def write_now(self, parts: Sequence[bytes]) -> None:
        """Send a text frame for each part."""
        self.transport.writeSequence([piece for part in parts for piece in _frame(TEXT, part)])

    def close_with_code(self, message: dict[str, Any]) -> None:
        """Close with any code; autobahn allows only few codes."""
        if self.state == self.STATE_CONNECTING:
            self.serverReject()
        else:
            self.sendCloseFrame(code=message.get("code", 1000), reasonUtf8=message.get("reason", "").encode()[:120])


def _frame(opcode: int, payload: bytes) -> tuple[bytes, bytes]:
    """Return the head and the payload of an unmasked frame with the whole message (RFC 6455 §5.2)."""
    size = len(payload)
    if size < 126:
        return bytes((FIN | opcode, size)), payload
    if size < 2**16:
        return bytes((FIN | opcode, 126)) + size.to_bytes(2, "big"), payload
    return bytes((FIN | opcode, 127)) + size.to_bytes(8, "big"), payload


_REPLIES: Final = {
    "websocket.accept": WebSocket.accept,
    "websocket.http.response.start": WebSocket.deny,
    "websocket.http.response.body": WebSocket.denied,
    "websocket.send": WebSocket.send,
    "websocket.close": WebSocket.close_with_code,
}
