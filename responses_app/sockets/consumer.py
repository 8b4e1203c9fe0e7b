"""WebSocket consumer: authentication, frames, lifetime and close codes of a connection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import orjson
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from responses_app.access.api_keys import authenticate_header
from responses_app.access.refusals import note_refusal
from responses_app.errors import ApiError, Forbidden, InvalidRequest, NotFound, RateLimited, ServiceUnavailable, Unauthorized
from responses_app.models import ApiKey
from responses_app.observability import events
from responses_app.observability.records import ObservedRequest, note
from responses_app.runs import manager
from responses_app.runs.ids import new_id
from responses_app.sockets import incoming, steering
from responses_app.sockets.incoming import CreateFrame
from responses_app.sockets.outgoing import encode_error
from responses_app.sockets.streams import MAX_QUEUED_REQUESTS, StreamRegistry
from responses_app.wire import profiles
from responses_app.wire.api_errors import to_api_error
from responses_app.wire.asgi_extensions import DirectWriter, direct_writer
from responses_app.wire.request_body import MAX_LOOP_BYTES, off_loop
from responses_app.wire.transport_limits import MIB

logger = logging.getLogger("responses.sockets")

# Close codes of RFC 6455, section 7.4.1.
NORMAL, GOING_AWAY, POLICY_VIOLATION, INTERNAL_ERROR = 1000, 1001, 1008, 1011
# Seconds that the running responses of an expired connection may take to end.
EXPIRY_GRACE_S: Final = 900.0
# ASGI extension for an HTTP response in place of a WebSocket handshake.
DENIAL: Final = "websocket.http.response"


class ResponsesSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Authenticated WebSocket connection with named streams of responses.

    Only the `Authorization` header authenticates: browsers send cookies for pages of other sites, but not this header.
    """

    # The open connections of this process.
    open_connections: ClassVar[set[ResponsesSocket]] = set()

    request_id: str
    project: str
    _authorization: str
    _writer: DirectWriter | None
    _streams: StreamRegistry
    _lifetime: asyncio.Task[None]
    _opened_at: float
    # The maximum age is reached: no response may start.
    _is_expired = False
    # The API key was revoked.
    _is_revoked = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the consumer, and close all streams on every exit because streams use the database thread of the consumer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.disconnect(INTERNAL_ERROR)

    async def dispatch(self, message: Mapping[str, Any]) -> None:
        """Call the handler of `message`, without Channels' check for old database connections per frame."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    # SocketConnection

    @property
    def open_responses(self) -> bool:
        """Return True if the client uses the Open Responses profile."""
        return str(self.scope["path"]).startswith(profiles.OPEN)

    def observed_request(self) -> ObservedRequest:
        """Return a record of a request on the connection, for the observers."""
        record = ObservedRequest.of_scope("WEBSOCKET", self.scope)
        record.request_id, record.project = self.request_id, self.project
        events.request_began(record)
        return record

    async def authenticate(self) -> ApiKey:
        """Check the API key again, because a key may be revoked meanwhile. Raise ApiError for a revoked key or an expired connection."""
        if self._is_expired:
            raise _expired()
        try:
            return await authenticate_header(self._authorization)
        except Unauthorized:
            self._is_revoked = True
            raise

    async def send(self, text: str) -> None:
        """Send a text frame, with backpressure. Channels' own `send` costs two more coroutines per event."""
        await self.base_send({"type": "websocket.send", "text": text})
        if self._is_revoked:
            await self.close(POLICY_VIOLATION)

    async def send_events(self, events: Sequence[bytes]) -> None:
        """Send a text frame for each event, with backpressure."""
        if not self.push_events(events):
            for event in events:
                await self.send(event.decode())

    def push_events(self, events: Sequence[bytes]) -> bool:
        """Send a text frame for each event at once. Return False, and send nothing, if the client is behind or the key was revoked."""
        if self._is_revoked or self._writer is None or not self._writer.can_write_now():
            return False
        self._writer.write_now(events)
        return True

    async def close_interrupted(self) -> None:
        """Close the connection because a response continues in a different process."""
        await self.close(GOING_AWAY if manager.current().leaving else INTERNAL_ERROR)

    def map_error(self, error: Exception) -> ApiError:
        """Map an exception to the ApiError for the client, and log the error."""
        mapped = to_api_error(error, self.request_id, str(self.scope["path"]))
        logger.info(
            "%s %d %s param=%s code=%s", self.request_id, mapped.status, mapped.message[:200], mapped.param, mapped.code
        )
        # A handshake that is refused is an HTTP request with the status 429.
        if mapped.status == RateLimited.status and self in self.open_connections:
            events.rate_limited()
        address = str((self.scope.get("client") or ("",))[0])
        note_refusal(mapped, self.request_id, ("WEBSOCKET", str(self.scope["path"])), self._authorization, address)
        return mapped

    # Handshake

    async def connect(self) -> None:
        """Authenticate and accept the connection. A refusal is an HTTP response with the API's error object."""
        self.request_id = new_id("req_")
        note(request_id=self.request_id)
        self._streams = StreamRegistry(self)
        self._authorization = self._header(b"authorization")
        self._writer = direct_writer(self.scope)
        try:
            self._check_origin()
            self._check_capacity()
            self.project = (await authenticate_header(self._authorization)).project
        except Exception as error:
            await deny(self, self.map_error(error), self.request_id)
        self.open_connections.add(self)
        events.sockets_changed(len(self.open_connections))
        self._opened_at = time.monotonic()
        self._lifetime = asyncio.get_running_loop().create_task(self._enforce_lifetime(), name=f"lifetime {self.request_id}")
        await self.accept(headers=[(b"x-request-id", self.request_id.encode()), (b"openai-version", b"2020-10-01")])

    def _check_origin(self) -> None:
        problem = settings.RESPONSES_CORS_POLICY.socket_problem(self._header(b"origin"), self._header(b"host"))
        if problem is not None:
            raise Forbidden(problem)

    def _check_capacity(self) -> None:
        if manager.current().is_stopping:
            raise ServiceUnavailable("The server is stopping. Try again in a moment.")
        if len(self.open_connections) >= settings.RESPONSES_MAX_SOCKETS:
            raise RateLimited(
                f"{settings.RESPONSES_MAX_SOCKETS} WebSockets are open, which is the limit. Try again in a moment."
            )

    def _header(self, header: bytes) -> str:
        return next((value.decode("latin1") for name, value in self.scope["headers"] if name == header), "")

    # Frames

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a frame. The error for an invalid frame is sent in order, behind the earlier requests of the stream."""
        del bytes_data
        name: str | None = None
        try:
            raw = await self._parse(text_data)
            name = incoming.stream_id(raw)
            if incoming.frame_type(raw) == incoming.STEER:
                await self._steer(raw)
                return
            stream = self._streams.get_or_create(name)
            if self._streams.is_full:
                raise RateLimited(f"{MAX_QUEUED_REQUESTS} requests wait on this connection, which is the limit.")
            self._check_queued_bytes(len(text_data or ""))
        except ApiError as error:
            await self._reject(name, error)
            return
        body = profiles.from_profile(raw) if self.open_responses else raw
        self._streams.enqueue(stream, CreateFrame(body, len(text_data or "")))

    async def _parse(self, text: str | None) -> dict[str, Any]:
        """Parse a frame, in a thread if `text` is long. Raise InvalidRequest, RateLimited or Unauthorized."""
        if text is None or len(text) <= MAX_LOOP_BYTES:
            return incoming.parse(text)
        return await off_loop(await authenticate_header(self._authorization), len(text), incoming.parse, text)

    def _check_queued_bytes(self, size: int) -> None:
        """Limit the bytes of the queued requests of all connections. Raise RateLimited; requests up to `MAX_LOOP_BYTES` bytes pass."""
        if size <= MAX_LOOP_BYTES:
            return
        queued = [(connection.project, connection._streams.queued_bytes) for connection in self.open_connections]
        of_project = sum(count for project, count in queued if project == self.project)
        if of_project + size > settings.RESPONSES_MAX_UNFINISHED_MIB_PER_KEY * MIB:
            raise RateLimited(
                "The requests that wait on the WebSockets of this project are too large together. Try again in a moment."
            )
        if sum(count for _, count in queued) + size > settings.RESPONSES_MAX_UNFINISHED_MIB * MIB:
            raise RateLimited("The requests that wait on all WebSockets are too large together. Try again in a moment.")

    async def _reject(self, name: str | None, error: ApiError) -> None:
        """Send `error` for a frame: in order on a known stream, at once for an unknown stream or a reached limit."""
        stream = self._streams.get(name)
        if stream is None or isinstance(error, RateLimited):
            await self.send(encode_error(self.map_error(error), name))
        else:
            self._streams.enqueue(stream, error)

    async def _steer(self, raw: Mapping[str, Any]) -> None:
        steer = steering.parse(raw)
        stream = self._streams.by_response(steer.previous_response_id)
        if stream is not None:
            await stream.steer(steer, raw)
            return
        message = f"Response with id '{steer.previous_response_id[:200]}' is not under way on this connection."
        await self.send(orjson.dumps(steer.failed(0, "response_not_found", message)).decode())

    # Close

    async def _enforce_lifetime(self) -> None:
        """Wait for the maximum age or the stop of the server, let running responses end, and close the connection."""
        with suppress(TimeoutError):
            await asyncio.wait_for(manager.current().stopping.wait(), settings.RESPONSES_SOCKET_AGE)
        stopping = manager.current().stopping.is_set()
        self._is_expired = not stopping
        with suppress(TimeoutError):
            await asyncio.wait_for(self._streams.wait_idle(), EXPIRY_GRACE_S)
        if self._is_expired:
            await self.send(encode_error(_expired(), None))
        await self.close(GOING_AWAY if stopping else NORMAL)

    async def disconnect(self, code: int) -> None:
        """Close all streams and forget the connection. Stored responses may continue without a client."""
        if self in self.open_connections:
            self.open_connections.discard(self)
            events.sockets_changed(len(self.open_connections))
            self._lifetime.cancel()
            await self._streams.close()
            seconds, count = time.monotonic() - self._opened_at, self._streams.response_count
            logger.info("%s WebSocket closed (%s) after %.1f s, %d responses", self.request_id, code, seconds, count)

    async def websocket_disconnect(self, message: Mapping[str, Any]) -> None:
        """Handle `websocket.disconnect` as Channels does, but without channel groups."""
        await self.disconnect(message.get("code", INTERNAL_ERROR))
        raise StopConsumer


class UnknownPath(AsyncWebsocketConsumer):  # type: ignore[misc]
    """WebSocket handshake at an unknown path: 404 with the API's error object."""

    async def connect(self) -> None:
        """Deny the handshake."""
        error = NotFound(f"Invalid URL (GET {self.scope['path']}): there is no WebSocket.")
        await deny(self, error, new_id("req_"))


async def deny(consumer: AsyncWebsocketConsumer, error: ApiError, request_id: str) -> None:
    """Answer the handshake with an HTTP response and stop. Servers without the `DENIAL` extension answer 403 themselves."""
    if DENIAL not in (consumer.scope.get("extensions") or {}):
        await consumer.close()
        raise StopConsumer
    headers = {"content-type": "application/json", "x-request-id": request_id, "openai-version": "2020-10-01", **error.headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await consumer.base_send({"type": f"{DENIAL}.start", "status": error.status, "headers": pairs})
    await consumer.base_send({"type": f"{DENIAL}.body", "body": orjson.dumps(error.body())})
    raise StopConsumer


def _expired() -> InvalidRequest:
    minutes = settings.RESPONSES_SOCKET_AGE / 60
    message = (
        f"Responses websocket connection limit reached ({minutes:g} minutes). Create a new websocket connection to continue."
    )
    return InvalidRequest(message, code="websocket_connection_limit_reached")
