"""Stream of a WebSocket: requests with the same `stream_id`, in order, with the active and the latest response."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from responses_app.access import rate_limits, request_access
from responses_app.access.rate_limits import AdmittedRequest
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.errors import ApiError, ServiceUnavailable
from responses_app.models import ApiKey
from responses_app.observability import events
from responses_app.observability.records import ObservedRequest
from responses_app.protocol.encoding import EventFrame
from responses_app.runs import manager
from responses_app.runs.context_cache import CachedContext, cache_context
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.run import Run
from responses_app.runs.new_run import KnownContext
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.sockets import steering
from responses_app.sockets.incoming import CreateFrame
from responses_app.sockets.interfaces import SocketConnection, StreamPeers
from responses_app.sockets.outgoing import encode_control, encode_error, encode_event
from responses_app.sockets.steering import SteerRejected, SteerRequest
from responses_app.store.db import release_connection
from responses_app.store.log.reader import TERMINAL
from responses_app.wire import request_body
from responses_app.wire.sse import EventFormat

NOT_ACTIVE = "response_not_active"
# Error code of a late steer by the status of the ended response; all other statuses have NOT_ACTIVE.
LATE_STEER_CODES = {"completed": "response_already_completed"}


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Request of the server to continue a steered response."""

    request: CreateRequest
    steers: list[SteerRequest]
    size = 0

    @property
    def previous_response_id(self) -> object:
        """Return the id of the steered response."""
        return self.request.previous_response_id

    def to_request(self, key: ApiKey) -> CreateRequest:
        """Return the request with `key`, the current key of the connection."""
        return replace(self.request, key=key.pk, user=key.user_pk, project=key.project)


QueuedRequest: TypeAlias = CreateFrame | FollowUp | ApiError


@dataclass(slots=True)
class ActiveResponse:
    """Running response of a stream; `last` is the last sent event."""

    run: Run
    prepared: PreparedRequest
    token_cache: TokenCache
    request: CreateRequest
    admission: AdmittedRequest
    size: int
    # Steers that waited for required input of an earlier response and now fail, because this response does not continue it.
    stale_steers: list[SteerRequest]
    last: EventFrame | None = None
    steers: list[SteerRequest] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Return the sequence number of the last sent event."""
        return 0 if self.last is None else self.last.number


class Stream:
    """Queue of requests with the same `stream_id`, run in order.

    `cached` is the context of the latest response, stored or not; `last` is the id and the status of the last ended response.
    """

    def __init__(self, name: str | None, connection: SocketConnection, peers: StreamPeers) -> None:
        self.name = name
        self.cached: CachedContext | None = None
        self.active: ActiveResponse | None = None
        self.queue: deque[QueuedRequest] = deque()
        self.response_count = 0
        self.last: tuple[str, str] | None = None
        # The id of a response with required input, and its steers.
        self._pending: tuple[str, list[SteerRequest]] | None = None
        self._connection, self._peers = connection, peers
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Return True if no request runs or waits."""
        return self._task is None

    def enqueue(self, queued: QueuedRequest) -> None:
        """Add a request, or an error to send in order, and start an idle stream."""
        self.queue.append(queued)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=f"stream {self.name}")

    async def close(self) -> None:
        """Drop all queued requests and cancel the active response."""
        self.queue.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def steer(self, steer: SteerRequest, raw: Mapping[str, Any]) -> None:
        """Steer the running response with the frame `raw`, or send `response.steer.failed`."""
        active = self.active
        try:
            if active is None or active.run.uid != steer.previous_response_id:
                raise self._too_late()
            steer = steer.accepted(raw, active.request, len(active.steers))
        except SteerRejected as rejected:
            await self._fail_steers([steer], rejected.code, rejected.message)
            return
        active.steers.append(steer)
        await self._send_control(steer.event("accepted", active.number))
        active.run.steer()

    def _too_late(self) -> SteerRejected:
        status = self.last[1] if self.last is not None else ""
        message = f"The response has ended ({status}) and takes no more input."
        return SteerRejected(LATE_STEER_CODES.get(status, NOT_ACTIVE), message)

    async def _work(self) -> None:
        try:
            while self.queue:
                queued = self.queue.popleft()
                async with self._peers.run_slots:
                    await self._process(queued)
                await sync_to_async(release_connection)()
        finally:
            self._task = None
            self._peers.on_idle()

    async def _process(self, queued: QueuedRequest) -> None:
        record = self._connection.observed_request()
        try:
            await self._process_observed(queued, record)
        finally:
            events.socket_request_ended(record)

    async def _process_observed(self, queued: QueuedRequest, record: ObservedRequest) -> None:
        try:
            active = await self._admit(queued, record)
        except Exception as error:
            record.status = await self._refuse(queued, error)
            return
        self.active = active
        try:
            await self._send_events(active)
        except DatabaseError as error:
            # The response continues in another process and its log cannot be read.
            self._connection.map_error(error)
        finally:
            self.active = None
            manager.current().client_disconnected(active.run)
        if active.last is None or active.last.type not in TERMINAL:
            await self._connection.close_interrupted()
            return
        record.status = HTTPStatus.OK
        await self._continue_steered(active)

    async def _admit(self, queued: QueuedRequest, record: ObservedRequest) -> ActiveResponse:
        """Validate a queued request, check the limits of the API key and start the response. Raise ApiError."""
        if isinstance(queued, ApiError):
            raise queued
        if manager.current().is_stopping:
            raise ServiceUnavailable("The server is stopping. Try again in a moment.")
        key = await self._connection.authenticate()
        record.key_id, record.user_id = key.pk, key.user_pk
        async with manager.current().starts.turn(key.project), rate_limits.admit(key) as admission:
            size = queued.size if isinstance(queued, CreateFrame) else 0
            parsed = await request_body.off_loop(key, size, queued.to_request, key)
            parsed = replace(parsed, request_id=record.request_id, traceparent=record.traceparent, tracestate=record.tracestate)
            request = request_access.authorize(key, parsed)
            active = await self._start(queued, request, admission)
            record.keep_run(lambda: active.run.writer.response, active.run.engine_name, request.input)
            admission.follow(active.run, active.request)
        return active

    async def _start(
        self, queued: CreateFrame | FollowUp, request: CreateRequest, admission: AdmittedRequest
    ) -> ActiveResponse:
        steers: list[SteerRequest] = []
        if self._pending is not None and self._pending[0] == request.previous_response_id:
            steers = self._pending[1]
            request = replace(request, input=[*steering.input_of(steers), *request.input])
        before = self._peers.cached(request.previous_response_id)
        token_cache = TokenCache(before.known) if before is not None else TokenCache()
        known = KnownContext(before.context if before else None, token_cache, admission.reserve, admission.slot)
        run, prepared = await manager.current().start_run(request, known)
        # No await from here on: a cancellation would leave the run without a reader.
        pending, self._pending = self._pending, None
        stale_steers = pending[1] if pending is not None and not steers else []
        size = queued.size + (before.request_bytes if before else 0)
        return ActiveResponse(run, prepared, token_cache, request, admission, size, stale_steers)

    async def _refuse(self, queued: QueuedRequest, error: Exception) -> int:
        """Send the error of a request without a response, and evict the cached context. Return the status of the error."""
        mapped = self._connection.map_error(error)
        if isinstance(queued, FollowUp):
            await self._fail_steers(queued.steers, "successor_creation_failed", mapped.message)
            return mapped.status
        if isinstance(queued, CreateFrame):
            self._evict(queued.previous_response_id)
            if self._pending is not None and self._pending[0] == queued.previous_response_id:
                steers, self._pending = self._pending[1], None
                await self._fail_steers(steers, "successor_creation_failed", mapped.message)
        await self._connection.send(encode_error(mapped, self.name))
        return mapped.status

    async def _send_events(self, active: ActiveResponse) -> None:
        """Send every event of the response."""
        await self._fail_steers(
            active.stale_steers, NOT_ACTIVE, "Another response started on this stream before the required input was sent."
        )
        async with aclosing(manager.current().subscribe(active.run, push=partial(self._push, active))) as batches:
            async for batch in batches:
                if not batch:
                    continue
                active.last = batch[-1]
                if active.last.type in TERMINAL:
                    self._on_ended(active, active.last)
                    await active.admission.release()
                await self._connection.send_events(self._encode(active, batch))

    def _push(self, active: ActiveResponse, frames: Sequence[EventFrame]) -> bool:
        """Send events at once. Return False, and send nothing, if the client is behind."""
        is_sent = self._connection.push_events(self._encode(active, frames))
        active.last = frames[-1] if is_sent else active.last
        return is_sent

    def _encode(self, active: ActiveResponse, frames: Sequence[EventFrame]) -> list[bytes]:
        form = EventFormat(active.request.obfuscate, self._connection.open_responses)
        return [encode_event(frame, form, self.name) for frame in frames]

    def _on_ended(self, active: ActiveResponse, frame: EventFrame) -> None:
        """Update the cache. Call before the terminal event `frame` is sent: the next request may continue the response."""
        run, status = active.run, str(active.run.writer.response["status"])
        self.last = run.uid, status
        self.response_count += 1
        if frame.type == "response.failed":
            self._evict(active.request.previous_response_id)
        elif run.broadcast.handed_over:
            # The response ended in another process, so this process has no context of it. A stored response is read from the database.
            self.cached = None
        else:
            self.cached = cache_context(run, active.prepared, active.token_cache, active.size + len(frame.data))
            self._peers.evict(self.name)

    def _evict(self, uid: object) -> None:
        if self.cached is not None and self.cached.uid == uid:
            self.cached = None

    async def _continue_steered(self, active: ActiveResponse) -> None:
        """Continue a steered response: queue a follow-up, wait for required input, or fail the steers."""
        steers, uid, response = active.steers, active.run.uid, active.run.writer.response
        if not steers:
            return
        if active.run.broadcast.handed_over or response["status"] not in ("completed", "incomplete"):
            message = "The response has not ended so that it could be continued."
            await self._fail_steers(steers, NOT_ACTIVE, message, active.number)
        elif required := steering.required_inputs(response["output"]):
            self._pending = uid, steers
            for steer in steers:
                reason = {"reason": "waiting_for_required_input", "required_input": required}
                await self._send_control(steer.event("pending", active.number, **reason))
        else:
            request = replace(active.request, input=steering.input_of(steers), previous_response_id=uid)
            self.queue.appendleft(FollowUp(request, steers))

    async def _fail_steers(self, steers: list[SteerRequest], code: str, message: str, number: int = 0) -> None:
        for steer in steers:
            await self._send_control(steer.failed(number, code, message))

    async def _send_control(self, event: Mapping[str, Any]) -> None:
        await self._connection.send(encode_control(event, self.name))
