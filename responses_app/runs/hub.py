"""The hub owns every run of this process, the engines that serve them, and what keeps them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.dialects.memo import Memo
from responses_app.engines.border import EngineDown
from responses_app.errors import Invalid, Unavailable
from responses_app.models import Response
from responses_app.runs.admission import Admission, Kind, Place
from responses_app.runs.birth import born
from responses_app.runs.compaction import compact
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan, plan
from responses_app.runs.run import Run
from responses_app.runs.served import Served, aliases, check_default, named, read, start_all
from responses_app.runs.tail import Tail
from responses_app.runs.takeover import take_over
from responses_app.runs.upkeep import upkeep
from responses_app.runs.watch import Watch
from responses_app.store import leases
from responses_app.store.history import Context
from responses_app.store.recorder import Recorder
from responses_app.store.records import Frame

logger = logging.getLogger("responses.hub")

STOP_LIMIT = 5.0
# How long it may take until a response has ended that another process runs, or that nobody runs since its process has died.
END_LIMIT = 15.0
LAST = 2**31 - 1
LONGEST_NAME = 200


class Hub:
    """One per process and event loop. `start` before use; `drain`, then `close`, at the end."""

    def __init__(self, served: Mapping[str, Served], aliases: Mapping[str, str] | None = None) -> None:
        self.served, self.aliases = served, aliases or {}
        self.runs: dict[str, Run] = {}
        self.admission = Admission()
        # Accepting nothing new; and, a little later, ending, so that who is cut off now has not left by itself.
        self.draining = self.leaving = False
        # For those who wait for that.
        self.stopping = asyncio.Event()
        self._recorder: Recorder | None = None
        self._watch: Watch | None = None
        self._tail: Tail | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._upkeep: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Open all dialects, start all engines side by side, and what keeps the log. A second call does nothing.

        Raises EngineDown, which names the model. Then, as when this is cancelled, no engine is left that came up.
        """
        async with self._starting:
            if self._recorder is not None:
                return
            await start_all(self.served)
            self._recorder = Recorder()
            self._watch = Watch(self.served, self.runs.values, self._room, lambda: not self.draining, self._adopt)
            self._tail = Tail(self._watch.wake, self._cancelled)
            # An empty context, as for a run.
            self._upkeep = asyncio.get_running_loop().create_task(upkeep(), name="upkeep", context=contextvars.Context())

    def model(self, name: str) -> Served:
        """The served model that answers to that name. Raises Invalid `model_not_found` (400: responses-api.md D9)."""
        served = named(name, self.served, self.aliases)
        if served is None:
            told = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
            raise Invalid(f"The requested model '{told}' does not exist.", param="model", code="model_not_found")
        return served

    async def worker(self) -> UUID:
        """Who this process is among the others. Raises Unavailable."""
        await self._up()
        assert self._watch is not None  # noqa: S101 - started
        return self._watch.worker

    async def begin(self, order: Order) -> Run:
        """Check what needs the model and the history, let the run go, and wait until its first events are kept.

        Raises ApiError, and then nothing was kept. One of the background that there is no room for is kept, and `parked`.
        """
        return (await self.launch(order))[0]

    async def launch(self, order: Order, before: Context | None = None, memo: Memo | None = None) -> tuple[Run, Plan]:
        """As `begin`, with the plan. `before` is what the order continues and `memo` its prompt, if they are known."""
        await self._up()
        served = self.model(order.model)
        place = await self._admit(order)
        try:
            run, planned = await self._prepare(order, served, before, memo, place)
        except BaseException:
            place.release()
            raise
        self._let_go(run, place)
        await run.opened()
        if run.parked:
            self._tell_work()
        return run, planned

    async def _prepare(
        self, order: Order, served: Served, before: Context | None, memo: Memo | None, place: Place
    ) -> tuple[Run, Plan]:
        """Plan the order and make its run, which has not begun."""
        planned = await plan(order, served, before, memo=memo)
        assert self._recorder is not None and self._watch is not None  # noqa: PT018, S101 - started
        parked = place.kind is Kind.QUEUED
        run = born(order, served, planned, self._recorder, None if parked else self._watch.worker)
        if not parked and not await served.engine.alive():
            raise Unavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.")
        return run, planned

    async def count(self, order: Order) -> int:
        """How many tokens the prompt of this order has. Raises ApiError where `begin` would; nothing runs, nothing is kept."""
        await self._up()
        served = self.model(order.model)
        self._accepts()
        with self.admission.admitted(order.project):
            request = (await plan(order, served, measure=True)).request
        return request.length or len(request.prompt)

    async def compact(self, order: Order) -> dict[str, Any]:
        """The `response.compaction` object. Raises ApiError; nothing is kept."""
        await self._up()
        self._accepts()
        with self.admission.admitted(order.project):
            return await compact(order, self.model(order.model))

    async def listen(self, uid: str, pk: int | None, after: int = -1) -> AsyncGenerator[Frame | None, None]:
        """Frames of a response up to its terminal one, whoever runs it and however often that changes; None after some silence."""
        pause = settings.RESPONSES_HEARTBEAT
        run = self.runs.get(uid)
        if run is not None:
            async with aclosing(self.attend(run, after)) as frames:
                async for frame in frames:
                    yield frame
        elif pk is not None:
            await self._up()
            assert self._tail is not None  # noqa: S101 - started
            async with aclosing(self._tail.follow(pk, after, pause)) as frames:
                async for frame in frames:
                    yield frame

    def attend(self, run: Run, after: int = -1) -> AsyncGenerator[Frame | None, None]:
        """Frames of a run of this process, and then, if it moves, of whoever goes on with it."""
        return run.listen(after, settings.RESPONSES_HEARTBEAT, partial(self._elsewhere, run))

    async def _elsewhere(self, run: Run, after: int) -> AsyncGenerator[Frame | None, None]:
        # While the process ends there is no time to wait for another one: the listener comes back by itself.
        if run.pk is not None and not self.leaving and self._tail is not None:
            async with aclosing(self._tail.follow(run.pk, after, settings.RESPONSES_HEARTBEAT)) as frames:
                async for frame in frames:
                    yield frame

    def abandon(self, run: Run) -> None:
        """The client has gone, or has everything. Without the setting a run stops with its client (decision F4).

        A client that is cut off because this process ends has not left (F1).
        """
        if self.leaving and run.stored:
            return
        if not run.ended and not (run.stored and settings.RESPONSES_FINISH_ON_DISCONNECT):
            run.leave()

    async def end(self, row: Response) -> None:
        """Have a response end now, whichever process runs it; nothing happens if it has ended. Raises Unavailable after END_LIMIT."""
        run = self.runs.get(row.uid)
        if run is not None:
            run.leave()
            await run.done()
            if not run.moved:
                return
        if not await sync_to_async(leases.cancel)(row.pk):
            return
        await self._up()
        assert self._tail is not None  # noqa: S101 - started
        self._tail.cancel(row.pk)
        self._tell_work()
        try:
            async with asyncio.timeout(END_LIMIT), aclosing(self._tail.follow(row.pk, LAST)) as frames:
                async for _ in frames:
                    pass
        except TimeoutError:
            raise Unavailable("The process that runs this response does not answer. Try again in a moment.") from None

    def hurry(self) -> None:
        """There is no time to drain: whoever is cut off from now on has not left by itself."""
        self.draining = self.leaving = True

    async def drain(self, seconds: float) -> None:
        """Accept nothing new, give what runs up to `seconds` to end, and hand over the rest."""
        self.draining = True
        self.stopping.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        await self._hand_over()

    async def close(self) -> None:
        """Hand over what still runs, write what is queued, stop the engines."""
        await self._hand_over()
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.wait({self._upkeep}, timeout=STOP_LIMIT)
        if self._tail is not None:
            await self._tail.close()
        for served in self.served.values():
            await served.engine.close()

    async def _hand_over(self) -> None:
        """Others go on with what is kept; what is not ends. Nothing is given back before all of it is written."""
        self.draining = self.leaving = True
        if self._watch is not None:
            await self._watch.stop()
        for run in list(self.runs.values()):
            if run.stored:
                run.release()
            else:
                run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_LIMIT)
        if self._recorder is not None:
            await self._recorder.close()
        if self._watch is not None and self._tail is not None:
            await self._watch.give_back()
            self._tail.work()

    async def _up(self) -> None:
        """All has started, or does now. Raises Unavailable."""
        try:
            await self.start()
        except EngineDown as error:
            logger.error("no start: %s", error)
            raise Unavailable("The engine of this server did not start. Try again in a moment.") from error

    def _accepts(self) -> None:
        if self.draining:
            raise Unavailable("The server is stopping. Try again in a moment.")

    async def _admit(self, order: Order) -> Place:
        """Take a place for the order. Raises Busy, Unavailable. A long queue in the background keeps nobody from being answered."""
        self._accepts()
        if not order.background:
            return self.admission.admit(order.project)
        assert self._watch is not None  # noqa: S101 - started
        return await self.admission.admit_background(queue=self._watch.backlog)

    def _room(self) -> int:
        """How many more of the background may begin here."""
        return 0 if self.draining else self.admission.background_room

    async def _adopt(self, pk: int) -> None:
        """Go on with a response that this process holds the lease of."""
        assert self._recorder is not None and self._watch is not None  # noqa: PT018, S101 - started
        run = await take_over(pk, self._watch.worker, self.served, self._recorder)
        if run is not None and not self.leaving:
            self._let_go(run, self.admission.take(Kind.BACKGROUND if run.background else Kind.FOREGROUND))

    def _let_go(self, run: Run, place: Place) -> None:
        # An empty context: the run must not inherit the database thread of the request that started it.
        task = asyncio.get_running_loop().create_task(_drive(run, place), name=run.uid, context=contextvars.Context())
        run.own(task)
        if self._tail is not None:
            run.shown = partial(self._tail.more, run)
        self.runs[run.uid] = run
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._forget(run, task, place))

    def _forget(self, run: Run, task: asyncio.Task[None], place: Place) -> None:
        if self.runs.get(run.uid) is run:
            del self.runs[run.uid]
        self._tasks.discard(task)
        # A task that was cancelled before its first step has not come to its own release.
        place.release()
        run.let_go()
        if run.background and self._watch is not None:
            self._watch.wake()

    def _cancelled(self, pk: int) -> None:
        for run in self.runs.values():
            if run.pk == pk:
                run.leave()

    def _tell_work(self) -> None:
        """Something waits to be claimed: here at once, elsewhere as soon as the signal is there."""
        if self._watch is not None and self._tail is not None:
            self._watch.wake()
            self._tail.work()


async def _drive(run: Run, place: Place) -> None:
    """Run to the end and release the place in the same step: a listener that has heard the end can begin another."""
    try:
        await run.go()
    finally:
        place.release()


_current: Hub | None = None


def current() -> Hub:
    """The hub of this process, made from the settings at first use. Its engines start with `start`, or with the first request."""
    global _current
    if _current is None:
        served = read(settings.RESPONSES_MODELS)
        others = aliases(settings.RESPONSES_ALIASES, served)
        check_default(settings.RESPONSES_DEFAULT_MODEL, served, others)
        _current = Hub(served, others)
    return _current


def use(hub: Hub | None) -> None:
    """Put another hub in its place."""
    global _current
    _current = hub
