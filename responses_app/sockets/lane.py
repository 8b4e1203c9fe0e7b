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

from responses_app.api import body, limits, model_access
from responses_app.api.limits import Ticket
from responses_app.api.sse import Form
from responses_app.dialects.memo import Memo
from responses_app.errors import ApiError
from responses_app.models import ApiKey
from responses_app.runs import hub
from responses_app.runs.kept import Kept, kept
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan
from responses_app.runs.run import Run
from responses_app.sockets import steering
from responses_app.sockets.frames import Create
from responses_app.sockets.steering import Refused, Steer
from responses_app.sockets.told import dressed, envelope, on
from responses_app.store.connection import give_back
from responses_app.store.records import Frame
from responses_app.store.replay import TERMINAL

GONE_ON = "response_not_active"
LATE = {"completed": "response_already_completed"}


class Line(Protocol):
    """What a lane asks of its connection."""

    named_open: bool
    # The id of the request that opened the connection.
    request_id: str

    async def key(self) -> ApiKey:
        """Who is asking, still. Raises ApiError, also where no more responses are begun on this connection."""
        ...

    async def say(self, text: str) -> None:
        """A frame to the client, who may let us wait."""
        ...

    async def cut(self) -> None:
        """A response goes on, but not here: only the end of the connection tells that."""
        ...

    def translated(self, error: Exception) -> ApiError:
        """What the client is told of any exception."""
        ...


class Neighbours(Protocol):
    """What a lane asks of all lanes of its connection."""

    # Lets so many of their responses run at a time.
    begins: asyncio.Semaphore

    def known(self, uid: str | None) -> Kept | None:
        """What any of them remembers of that response."""
        ...

    def trim(self, newest: Lane) -> None:
        """A lane remembers something new."""
        ...

    def rest(self) -> None:
        """A lane has nothing more to do."""
        ...


@dataclass(frozen=True, slots=True)
class Successor:
    """What follows a response by itself, because it was steered."""

    made: Order
    steers: list[Steer]
    size = 0

    @property
    def previous(self) -> object:
        """What it continues."""
        return self.made.previous_response_id

    def order(self, key: ApiKey) -> Order:
        """The order, of whoever asks now."""
        return replace(self.made, key=key.pk, project=key.project)


Turn: TypeAlias = Create | Successor | ApiError


@dataclass(slots=True)
class Course:
    """A response that is under way here; `number` is that of its last event that was told."""

    run: Run
    plan: Plan
    memo: Memo
    order: Order
    ticket: Ticket
    size: int
    # Steers that waited on the lane for something else.
    passed: list[Steer]
    number: int = 0
    steers: list[Steer] = field(default_factory=list)


class Lane:
    """`kept` is its latest response, stored or not, `last` the id and the status of the last that has ended."""

    def __init__(self, name: str | None, line: Line, lanes: Neighbours) -> None:
        self.name = name
        self.kept: Kept | None = None
        self.course: Course | None = None
        self.turns: deque[Turn] = deque()
        self.made = 0
        self.last: tuple[str, str] | None = None
        self._pending: tuple[str, list[Steer]] | None = None
        self._line, self._lanes = line, lanes
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._task is None

    def add(self, turn: Turn) -> None:
        """A request, or what is to be told in its place, when its turn comes."""
        self.turns.append(turn)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._go(), name=f"lane {self.name}")

    async def close(self) -> None:
        """The client has gone."""
        self.turns.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def steer(self, steer: Steer, raw: Mapping[str, Any]) -> None:
        """Take a steer for what is under way, or for what was last, or say why not."""
        course = self.course
        try:
            if course is None or course.run.uid != steer.parent:
                raise self._too_late()
            steer = steer.accepted(raw, course.order, len(course.steers))
        except Refused as refused:
            await self._fail([steer], refused.code, refused.message)
            return
        course.steers.append(steer)
        await self._say(steer.event("accepted", course.number))
        course.run.steer()

    def _too_late(self) -> Refused:
        status = self.last[1] if self.last is not None else ""
        return Refused(LATE.get(status, GONE_ON), f"The response has ended ({status}) and takes no more input.")

    async def _go(self) -> None:
        try:
            while self.turns:
                turn = self.turns.popleft()
                async with self._lanes.begins:
                    await self._take(turn)
                await sync_to_async(give_back)()
        finally:
            self._task = None
            self._lanes.rest()

    async def _take(self, turn: Turn) -> None:
        try:
            course = await self._begin(turn)
        except Exception as error:
            await self._refuse(turn, error)
            return
        self.course = course
        last: Frame | None = None
        try:
            last = await self._follow(course)
        except DatabaseError as error:
            # The log of a response that has gone elsewhere cannot be read any more.
            self._line.translated(error)
        finally:
            self.course = None
            hub.current().abandon(course.run)
        if last is None or last.type not in TERMINAL:
            await self._line.cut()
            return
        await self._steered(course)

    async def _begin(self, turn: Turn) -> Course:
        """Let the response of a turn begin. Raises ApiError."""
        if isinstance(turn, ApiError):
            raise turn
        key = await self._line.key()
        async with limits.admitted(key) as ticket:
            read = await body.beside(key, turn.size if isinstance(turn, Create) else 0, turn.order, key)
            order = replace(read, request_id=self._line.request_id)
            model_access.permit(key, order.model)
            course = await self._launch(turn, order, ticket)
            try:
                if course.run.stored:
                    # From now on its row tells that it runs.
                    await ticket.give()
                ticket.follow(course.run)
            except BaseException:
                # It runs, and nobody would listen: the client may go at this very moment.
                hub.current().abandon(course.run)
                raise
        return course

    async def _launch(self, turn: Create | Successor, order: Order, ticket: Ticket) -> Course:
        steers: list[Steer] = []
        if self._pending is not None and self._pending[0] == order.previous_response_id:
            steers = self._pending[1]
            order = replace(order, input=[*steering.input_of(steers), *order.input])
        before = self._lanes.known(order.previous_response_id)
        memo = Memo(before.known) if before is not None else Memo()
        run, plan = await hub.current().launch(order, before.context if before else None, memo)
        # No await from here on: whoever lets a run go has to see to its end.
        pending, self._pending = self._pending, None
        passed = pending[1] if pending is not None and not steers else []
        return Course(run, plan, memo, order, ticket, turn.size + (before.asked if before else 0), passed)

    async def _refuse(self, turn: Turn, error: Exception) -> None:
        """Say why there is no response. What it would have continued is forgotten, if it was made on this lane (§1.7.4)."""
        told = self._line.translated(error)
        if isinstance(turn, Successor):
            await self._fail(turn.steers, "successor_creation_failed", told.message)
            return
        if isinstance(turn, Create):
            self._evict(turn.previous)
            if self._pending is not None and self._pending[0] == turn.previous:
                steers, self._pending = self._pending[1], None
                await self._fail(steers, "successor_creation_failed", told.message)
        await self._line.say(envelope(told, self.name))

    async def _follow(self, course: Course) -> Frame | None:
        """Tell every event; the last one."""
        last, form = None, Form(course.order.obfuscate, self._line.named_open)
        await self._fail(course.passed, GONE_ON, "Another response was begun on the lane before what this one waits for was said.")
        async with aclosing(hub.current().attend(course.run)) as frames:
            async for frame in frames:
                if frame is None:
                    continue
                last, course.number = frame, frame.number
                if frame.type in TERMINAL:
                    self._remember(course, frame)
                    await course.ticket.give()
                await self._line.say(dressed(frame, form, self.name))
        return last

    def _remember(self, course: Course, frame: Frame) -> None:
        """Before the client can know that it has ended: whatever it asks next may continue it."""
        run, status = course.run, str(course.run.response["status"])
        self.last = run.uid, status
        self.made += 1
        if frame.type == "response.failed":
            self._evict(course.order.previous_response_id)
        elif run.moved:
            # Another process has ended it. What is stored can be looked up.
            self.kept = None
        else:
            self.kept = kept(run, course.plan, course.memo, course.size + len(frame.data))
            self._lanes.trim(self)

    def _evict(self, uid: object) -> None:
        if self.kept is not None and self.kept.uid == uid:
            self.kept = None

    async def _steered(self, course: Course) -> None:
        """What was accepted goes to a successor, or waits for what has to be said first, or comes back."""
        steers, uid, response = course.steers, course.run.uid, course.run.response
        if not steers:
            return
        if course.run.moved or response["status"] not in ("completed", "incomplete"):
            await self._fail(steers, GONE_ON, "The response has not ended so that it could be continued.", course.number)
        elif required := steering.stubs(response["output"]):
            self._pending = uid, steers
            for steer in steers:
                reason = {"reason": "waiting_for_required_input", "required_input": required}
                await self._say(steer.event("pending", course.number, **reason))
        else:
            made = replace(course.order, input=steering.input_of(steers), previous_response_id=uid)
            self.turns.appendleft(Successor(made, steers))

    async def _fail(self, steers: list[Steer], code: str, message: str, number: int = 0) -> None:
        for steer in steers:
            await self._say(steer.failed(number, code, message))

    async def _say(self, event: Mapping[str, Any]) -> None:
        await self._line.say(on(event, self.name))
