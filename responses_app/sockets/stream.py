"""One lane of a WebSocket: its requests one after the other, the response that it makes, and the last one that it made."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from responses_app.access import model_access, rate_limits
from responses_app.access.rate_limits import Admission
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.errors import ApiError
from responses_app.models import ApiKey
from responses_app.runs import manager
from responses_app.runs.context_cache import CachedContext, kept
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.run import Run
from responses_app.runs.prepare.planner import PreparedRequest
from responses_app.sockets import steering
from responses_app.sockets.incoming import CreateFrame
from responses_app.sockets.outgoing import encode_control, encode_error, encode_event
from responses_app.sockets.steering import SteerRejected, SteerRequest
from responses_app.store.db import give_back
from responses_app.store.log.reader import TERMINAL
from responses_app.store.log.records import EventFrame
from responses_app.wire import request_body
from responses_app.wire.sse import EventFormat

GONE_ON = "response_not_active"
LATE = {"completed": "response_already_completed"}


class SocketConnection(Protocol):
    """What a lane asks of its connection."""

    open_responses: bool
    # The id of the request that opened the connection.
    request_id: str

    async def key(self) -> ApiKey:
        """Who is asking, still. Raises ApiError, also where no more responses are begun on this connection."""
        ...

    async def send(self, text: str) -> None:
        """A frame to the client, who may let us wait."""
        ...

    async def close_interrupted(self) -> None:
        """A response goes on, but not here: only the end of the connection tells that."""
        ...

    def translated(self, error: Exception) -> ApiError:
        """What the client is told of any exception."""
        ...


class StreamPeers(Protocol):
    """What a lane asks of all lanes of its connection."""

    # Lets so many of their responses run at a time.
    begins: asyncio.Semaphore

    def cached(self, uid: str | None) -> CachedContext | None:
        """What any of them remembers of that response."""
        ...

    def evict(self, newest: Stream) -> None:
        """A lane remembers something new."""
        ...

    def on_idle(self) -> None:
        """A lane has nothing more to do."""
        ...


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows a response by itself, because it was steered."""

    made: CreateRequest
    steers: list[SteerRequest]
    size = 0

    @property
    def previous(self) -> object:
        """What it continues."""
        return self.made.previous_response_id

    def order(self, key: ApiKey) -> CreateRequest:
        """The order, of whoever asks now."""
        return replace(self.made, key=key.pk, project=key.project)


QueuedRequest: TypeAlias = CreateFrame | FollowUp | ApiError


@dataclass(slots=True)
class ActiveResponse:
    """A response that is under way here; `number` is that of its last event that was told."""

    run: Run
    plan: PreparedRequest
    memo: TokenCache
    order: CreateRequest
    ticket: Admission
    size: int
    # Steers that waited on the lane for something else.
    passed: list[SteerRequest]
    number: int = 0
    steers: list[SteerRequest] = field(default_factory=list)


class Stream:
    """`kept` is its latest response, stored or not, `last` the id and the status of the last that has ended."""

    def __init__(self, name: str | None, line: SocketConnection, lanes: StreamPeers) -> None:
        self.name = name
        self.kept: CachedContext | None = None
        self.course: ActiveResponse | None = None
        self.turns: deque[QueuedRequest] = deque()
        self.made = 0
        self.last: tuple[str, str] | None = None
        self._pending: tuple[str, list[SteerRequest]] | None = None
        self._line, self._lanes = line, lanes
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._task is None

    def add(self, turn: QueuedRequest) -> None:
        """A request, or what is to be told in its place, when its turn comes."""
        self.turns.append(turn)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=f"lane {self.name}")

    async def close(self) -> None:
        """The client has gone."""
        self.turns.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def steer(self, steer: SteerRequest, raw: Mapping[str, Any]) -> None:
        """Take a steer for what is under way, or for what was last, or say why not."""
        course = self.course
        try:
            if course is None or course.run.uid != steer.parent:
                raise self._too_late()
            steer = steer.accepted(raw, course.order, len(course.steers))
        except SteerRejected as refused:
            await self._fail([steer], refused.code, refused.message)
            return
        course.steers.append(steer)
        await self._say(steer.event("accepted", course.number))
        course.run.steer()

    def _too_late(self) -> SteerRejected:
        status = self.last[1] if self.last is not None else ""
        return SteerRejected(LATE.get(status, GONE_ON), f"The response has ended ({status}) and takes no more input.")

    async def _work(self) -> None:
        try:
            while self.turns:
                turn = self.turns.popleft()
                async with self._lanes.begins:
                    await self._process(turn)
                await sync_to_async(give_back)()
        finally:
            self._task = None
            self._lanes.on_idle()

    async def _process(self, turn: QueuedRequest) -> None:
        try:
            course = await self._admit(turn)
        except Exception as error:
            await self._refuse(turn, error)
            return
        self.course = course
        last: EventFrame | None = None
        try:
            last = await self._follow(course)
        except DatabaseError as error:
            # The log of a response that has gone elsewhere cannot be read any more.
            self._line.translated(error)
        finally:
            self.course = None
            manager.current().client_disconnected(course.run)
        if last is None or last.type not in TERMINAL:
            await self._line.close_interrupted()
            return
        await self._steered(course)

    async def _admit(self, turn: QueuedRequest) -> ActiveResponse:
        """Let the response of a turn begin. Raises ApiError."""
        if isinstance(turn, ApiError):
            raise turn
        key = await self._line.key()
        async with rate_limits.admit(key) as ticket:
            read = await request_body.off_loop(key, turn.size if isinstance(turn, CreateFrame) else 0, turn.order, key)
            order = replace(read, request_id=self._line.request_id)
            model_access.check_model(key, order.model)
            course = await self._start(turn, order, ticket)
            try:
                if course.run.stored:
                    # From now on its row tells that it runs.
                    await ticket.release()
                ticket.release_on_end(course.run)
            except BaseException:
                # It runs, and nobody would listen: the client may go at this very moment.
                manager.current().client_disconnected(course.run)
                raise
        return course

    async def _start(self, turn: CreateFrame | FollowUp, order: CreateRequest, ticket: Admission) -> ActiveResponse:
        steers: list[SteerRequest] = []
        if self._pending is not None and self._pending[0] == order.previous_response_id:
            steers = self._pending[1]
            order = replace(order, input=[*steering.input_of(steers), *order.input])
        before = self._lanes.cached(order.previous_response_id)
        memo = TokenCache(before.known) if before is not None else TokenCache()
        run, plan = await manager.current().start_prepared(order, before.context if before else None, memo)
        # No await from here on: whoever lets a run go has to see to its end.
        pending, self._pending = self._pending, None
        passed = pending[1] if pending is not None and not steers else []
        return ActiveResponse(run, plan, memo, order, ticket, turn.size + (before.asked if before else 0), passed)

    async def _refuse(self, turn: QueuedRequest, error: Exception) -> None:
        """Say why there is no response. What it would have continued is forgotten, if it was made on this lane (§1.7.4)."""
        told = self._line.translated(error)
        if isinstance(turn, FollowUp):
            await self._fail(turn.steers, "successor_creation_failed", told.message)
            return
        if isinstance(turn, CreateFrame):
            self._evict(turn.previous)
            if self._pending is not None and self._pending[0] == turn.previous:
                steers, self._pending = self._pending[1], None
                await self._fail(steers, "successor_creation_failed", told.message)
        await self._line.send(encode_error(told, self.name))

    async def _follow(self, course: ActiveResponse) -> EventFrame | None:
        """Tell every event; the last one."""
        last, form = None, EventFormat(course.order.obfuscate, self._line.open_responses)
        await self._fail(
            course.passed, GONE_ON, "Another response was begun on the lane before what this one waits for was said."
        )
        async with aclosing(manager.current().stream(course.run)) as frames:
            async for frame in frames:
                if frame is None:
                    continue
                last, course.number = frame, frame.number
                if frame.type in TERMINAL:
                    self._remember(course, frame)
                    await course.ticket.release()
                await self._line.send(encode_event(frame, form, self.name))
        return last

    def _remember(self, course: ActiveResponse, frame: EventFrame) -> None:
        """Before the client can know that it has ended: whatever it asks next may continue it."""
        run, status = course.run, str(course.run.response["status"])
        self.last = run.uid, status
        self.made += 1
        if frame.type == "response.failed":
            self._evict(course.order.previous_response_id)
        elif run.handed_over:
            # Another process has ended it. What is stored can be looked up.
            self.kept = None
        else:
            self.kept = kept(run, course.plan, course.memo, course.size + len(frame.data))
            self._lanes.evict(self)

    def _evict(self, uid: object) -> None:
        if self.kept is not None and self.kept.uid == uid:
            self.kept = None

    async def _steered(self, course: ActiveResponse) -> None:
        """What was accepted goes to a successor, or waits for what has to be said first, or comes back."""
        steers, uid, response = course.steers, course.run.uid, course.run.response
        if not steers:
            return
        if course.run.handed_over or response["status"] not in ("completed", "incomplete"):
            await self._fail(steers, GONE_ON, "The response has not ended so that it could be continued.", course.number)
        elif required := steering.required_inputs(response["output"]):
            self._pending = uid, steers
            for steer in steers:
                reason = {"reason": "waiting_for_required_input", "required_input": required}
                await self._say(steer.event("pending", course.number, **reason))
        else:
            made = replace(course.order, input=steering.input_of(steers), previous_response_id=uid)
            self.turns.appendleft(FollowUp(made, steers))

    async def _fail(self, steers: list[SteerRequest], code: str, message: str, number: int = 0) -> None:
        for steer in steers:
            await self._say(steer.failed(number, code, message))

    async def _say(self, event: Mapping[str, Any]) -> None:
        await self._line.send(encode_control(event, self.name))
