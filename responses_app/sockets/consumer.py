"""One WebSocket: who may open it, what is said on it, how long it lives, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

import orjson
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from responses_app.access.api_keys import authenticate_header
from responses_app.errors import ApiError, InvalidRequest, NotFound, RateLimited, ServiceUnavailable, Unauthorized
from responses_app.local.transport_limits import MIB
from responses_app.models import ApiKey
from responses_app.runs import manager
from responses_app.runs.ids import new_id
from responses_app.sockets import incoming, steering
from responses_app.sockets.incoming import CreateFrame
from responses_app.sockets.outgoing import encode_error
from responses_app.sockets.streams import MOST_WAITING, StreamRegistry
from responses_app.wire import profiles
from responses_app.wire.api_errors import to_api_error
from responses_app.wire.request_body import LONG, off_loop

logger = logging.getLogger("responses.sockets")

NORMAL, GOING_AWAY, REVOKED, BROKEN = 1000, 1001, 1008, 1011
# How long the responses of a connection that has come of age may take to end.
GRACE: Final = 900.0
DENIAL: Final = "websocket.http.response"


class ResponsesSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """A connection of a client that has shown its key, and what it asks for, in lanes.

    Only the `Authorization` header counts, which no page of another site can send: cookies open nothing here.
    """

    # Those of this process.
    open: ClassVar[set[ResponsesSocket]] = set()

    request_id: str
    project: str
    _authorization: str
    _lanes: StreamRegistry
    _life: asyncio.Task[None]
    _began: float
    # Whether it is too old to begin anything, and whether its key was taken back.
    _aged = False
    _revoked = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As Channels does. However it ends, also by a server that has no time, its lanes end with it: they use its database thread."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.disconnect(BROKEN)

    async def dispatch(self, message: Mapping[str, Any]) -> None:
        """As Channels does, which would ask a thread to look for old database connections at each frame."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    # The line, as lanes see it

    @property
    def open_responses(self) -> bool:
        """Whether the client speaks Open Responses."""
        return str(self.scope["path"]).startswith(profiles.OPEN)

    async def key(self) -> ApiKey:
        """Who is asking. It is looked up again now and then: a key may be revoked while its connection is open. Raises ApiError."""
        if self._aged:
            raise _expired()
        try:
            return await authenticate_header(self._authorization)
        except Unauthorized:
            self._revoked = True
            raise

    async def send(self, text: str) -> None:
        """A frame to the client, who may let us wait. The way through Channels' own `send` is two coroutines longer for each event."""
        await self.base_send({"type": "websocket.send", "text": text})
        if self._revoked:
            await self.close(REVOKED)

    async def close_interrupted(self) -> None:
        """A response goes on, but not here."""
        await self.close(GOING_AWAY if manager.current().leaving else BROKEN)

    def translated(self, error: Exception) -> ApiError:
        """What the client is told; the log has it too."""
        told = to_api_error(error, self.request_id, str(self.scope["path"]))
        logger.info("%s %d %s param=%s code=%s", self.request_id, told.status, told.message[:200], told.param, told.code)
        return told

    # The beginning

    async def connect(self) -> None:
        """Before anything is accepted, the key is asked for. What is refused is answered as any HTTP request is."""
        self.request_id = new_id("req_")
        self._lanes = StreamRegistry(self)
        self._authorization = self._header(b"authorization")
        try:
            self._admit()
            self.project = (await authenticate_header(self._authorization)).project
        except Exception as error:
            await deny(self, self.translated(error), self.request_id)
        self.open.add(self)
        self._began = time.monotonic()
        self._life = asyncio.get_running_loop().create_task(self._live(), name=f"life {self.request_id}")
        await self.accept(headers=[(b"x-request-id", self.request_id.encode()), (b"openai-version", b"2020-10-01")])

    def _admit(self) -> None:
        if manager.current().draining:
            raise ServiceUnavailable("The server is stopping. Try again in a moment.")
        if len(self.open) >= settings.RESPONSES_MAX_SOCKETS:
            raise RateLimited(
                f"{settings.RESPONSES_MAX_SOCKETS} WebSockets are open, which is the limit. Try again in a moment."
            )

    def _header(self, wanted: bytes) -> str:
        return next((value.decode("latin1") for name, value in self.scope["headers"] if name == wanted), "")

    # The middle

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """One frame. What is wrong with it is told when the turn of its lane comes, as if it were an answer."""
        del bytes_data
        name: str | None = None
        try:
            raw = await self._parse(text_data)
            name = incoming.lane(raw)
            if incoming.kind(raw) == incoming.STEER:
                await self._steer(raw)
                return
            lane = self._lanes.lane(name)
            if self._lanes.is_full:
                raise RateLimited(f"{MOST_WAITING} requests wait on this connection, which is the limit.")
            self._check_waiting_bytes(len(text_data or ""))
        except ApiError as error:
            await self._reject(name, error)
            return
        body = profiles.from_profile(raw) if self.open_responses else raw
        self._lanes.add(lane, CreateFrame(body, len(text_data or "")))

    async def _parse(self, text: str | None) -> dict[str, Any]:
        """Parse a frame, in a thread if it is long. Raises Invalid, Busy, Unauthorized."""
        if text is None or len(text) <= LONG:
            return incoming.parse(text)
        return await off_loop(await authenticate_header(self._authorization), len(text), incoming.parse, text)

    def _check_waiting_bytes(self, size: int) -> None:
        """Count the requests that wait on all connections. Raises Busy; short requests are not looked at."""
        if size <= LONG:
            return
        waiting = [(one.project, one._lanes.waiting_bytes) for one in self.open]
        ours = sum(held for project, held in waiting if project == self.project)
        if ours + size > settings.RESPONSES_MAX_UNFINISHED_MIB_PER_KEY * MIB:
            raise RateLimited(
                "The requests that wait on the WebSockets of this project are too large together. Try again in a moment."
            )
        if sum(held for _, held in waiting) + size > settings.RESPONSES_MAX_UNFINISHED_MIB * MIB:
            raise RateLimited("The requests that wait on all WebSockets are too large together. Try again in a moment.")

    async def _reject(self, name: str | None, error: ApiError) -> None:
        """Where the lane is known it tells it; one that does not exist, or that is full, has no turn for it."""
        known = self._lanes.known_lane(name)
        if known is None or isinstance(error, RateLimited):
            await self.send(encode_error(self.translated(error), name))
        else:
            self._lanes.add(known, error)

    async def _steer(self, raw: Mapping[str, Any]) -> None:
        steer = steering.read(raw)
        lane = self._lanes.by_response(steer.parent)
        if lane is not None:
            await lane.steer(steer, raw)
            return
        message = f"Response with id '{steer.parent[:200]}' is not under way on this connection."
        await self.send(orjson.dumps(steer.failed(0, "response_not_found", message)).decode())

    # The end

    async def _live(self) -> None:
        """Until the connection has come of age, or the server stops: then what runs may end, and nothing new begins."""
        with suppress(TimeoutError):
            await asyncio.wait_for(manager.current().stopping.wait(), settings.RESPONSES_SOCKET_AGE)
        stopping = manager.current().stopping.is_set()
        self._aged = not stopping
        with suppress(TimeoutError):
            await asyncio.wait_for(self._lanes.wait_idle(), GRACE)
        if self._aged:
            await self.send(encode_error(_expired(), None))
        await self.close(GOING_AWAY if stopping else NORMAL)

    async def disconnect(self, code: int) -> None:
        """The client has gone, or we have closed: what runs ends, or goes on without it, and nothing is left."""
        if self in self.open:
            self.open.discard(self)
            self._life.cancel()
            await self._lanes.close()
            seconds, made = time.monotonic() - self._began, self._lanes.made
            logger.info("%s WebSocket closed (%s) after %.1f s, %d responses", self.request_id, code, seconds, made)

    async def websocket_disconnect(self, message: Mapping[str, Any]) -> None:
        """As Channels does, and without groups."""
        await self.disconnect(message.get("code", BROKEN))
        raise StopConsumer


class UnknownPath(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Any other address: 404, in the API's shape."""

    async def connect(self) -> None:
        """Refuse."""
        error = NotFound(f"Invalid URL (GET {self.scope['path']}): there is no WebSocket.")
        await deny(self, error, new_id("req_"))


async def deny(consumer: AsyncWebsocketConsumer, error: ApiError, request_id: str) -> None:
    """Answer with HTTP in place of accepting, and stop. A server that cannot do that answers 403 by itself."""
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
