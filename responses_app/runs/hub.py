"""The hub owns every run of this process, the engines that serve them, and the recorder that keeps them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from responses_app.engines.border import EngineDown
from responses_app.errors import Busy, Invalid, Unavailable
from responses_app.grammar.pieces import Compaction
from responses_app.grammar.writer import Writer
from responses_app.models import Response, Status
from responses_app.runs import sealed, shape
from responses_app.runs.compaction import compact, shorten
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.plan import Plan, plan
from responses_app.runs.run import Run, Shorten
from responses_app.runs.served import Served, aliases, named, read
from responses_app.runs.upkeep import upkeep
from responses_app.store.history import Context
from responses_app.store.recorder import Recorder
from responses_app.store.records import Log

logger = logging.getLogger("responses.hub")

STOP_LIMIT = 5.0


class Hub:
    """One per process and event loop. `start` before use; `drain`, then `close`, at the end."""

    def __init__(self, served: Mapping[str, Served], aliases: Mapping[str, str] | None = None) -> None:
        self.served, self.aliases = served, aliases or {}
        self.runs: dict[str, Run] = {}
        self.draining = False
        # First come, first served: a semaphore lets in who has waited longest.
        self._gate = asyncio.Semaphore(settings.RESPONSES_MAX_BACKGROUND)
        self._recorder: Recorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Open all dialects, start all engines side by side, and the recorder. A second call does nothing.

        Raises EngineDown, which names the model. Then, as when this is cancelled, no engine is left that came up.
        """
        async with self._starting:
            if self._recorder is not None:
                return
            starts: list[asyncio.Task[None]] = []
            try:
                for served in self.served.values():
                    logger.info("starting %s", served.name)
                    await _named(served, served.open())
                starts += [asyncio.create_task(_named(served, served.engine.start())) for served in self.served.values()]
                await asyncio.gather(*starts)
            except BaseException:
                for start in starts:
                    start.cancel()
                if starts:
                    await asyncio.wait(starts, timeout=STOP_LIMIT)
                for served in self.served.values():
                    await served.engine.close()
                raise
            self._recorder = Recorder()
            # An empty context, as for a run.
            self._sweep = asyncio.get_running_loop().create_task(upkeep(), name="upkeep", context=contextvars.Context())

    def model(self, name: str) -> Served:
        """The served model that answers to that name. Raises Invalid `model_not_found` (400: responses-api.md D9)."""
        served = named(name, self.served, self.aliases)
        if served is None:
            raise Invalid(f"The requested model '{name}' does not exist.", param="model", code="model_not_found")
        return served

    async def begin(self, order: Order) -> Run:
        """Check what needs the model and the history, let the run go, and wait until its first events are kept.

        Raises ApiError, and then nothing was kept.
        """
        await self._up()
        served = self.model(order.model)
        self._admit(order)
        run = self._run(order, served, await plan(order, served))
        if not await served.engine.alive():
            raise Unavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.")
        self._let_go(run)
        await run.opened()
        return run

    async def count(self, order: Order) -> int:
        """How many tokens the prompt of this order has. Raises ApiError where `begin` would; nothing runs, nothing is kept."""
        await self._up()
        served = self.model(order.model)
        request = (await plan(order, served, measure=True)).request
        return request.length or len(request.prompt)

    async def compact(self, order: Order) -> dict[str, Any]:
        """The `response.compaction` object. Raises ApiError; nothing is kept."""
        await self._up()
        self._admit(order)
        return await compact(order, self.model(order.model))

    async def drain(self, seconds: float) -> None:
        """Accept nothing new, end what is queued, and give what runs up to `seconds` to end."""
        self.draining = True
        for run in list(self.runs.values()):
            if run.queued:
                run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self) -> None:
        """End what still runs, write what is queued, stop the engines."""
        self.draining = True
        for run in list(self.runs.values()):
            run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_LIMIT)
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.wait({self._sweep}, timeout=STOP_LIMIT)
        if self._recorder is not None:
            await self._recorder.close()
        for served in self.served.values():
            await served.engine.close()

    async def _up(self) -> None:
        """All has started, or does now. Raises Unavailable."""
        try:
            await self.start()
        except EngineDown as error:
            logger.error("no start: %s", error)
            raise Unavailable("The engine of this server did not start. Try again in a moment.") from error

    def _admit(self, order: Order) -> None:
        if self.draining:
            raise Unavailable("The server is stopping. Try again in a moment.")
        # Counted apart: a long queue in the background keeps nobody from being answered.
        count = sum(run.background == order.background for run in self.runs.values())
        limit = settings.RESPONSES_MAX_QUEUED if order.background else settings.RESPONSES_MAX_CONCURRENT
        if count >= limit:
            what = "queued or generated in the background" if order.background else "being generated"
            raise Busy(f"{count} responses are {what}, which is the limit. Try again in a moment.")

    def _run(self, order: Order, served: Served, plan: Plan) -> Run:
        assert self._recorder is not None  # noqa: S101 - started
        now, uid = int(time.time()), plan.request.id
        kept = order.store or order.background or plan.before.conversation is not None
        return Run(
            Writer(shape.birth(order, served, uid, now), mint, sealed.sealing(order)),
            served.engine,
            plan.request,
            plan.listener,
            recorder=self._recorder,
            log=Log(_row(order, uid, now, plan.before), plan.own, plan.fetched) if kept else None,
            patient=settings.RESPONSES_DURABILITY == "visible",
            gate=self._gate if order.background else None,
            shorten=_shorten(order, served, plan) if order.compact_threshold is not None and not order.compacts else None,
        )

    def _let_go(self, run: Run) -> None:
        # An empty context: the run must not inherit the database thread of the request that started it.
        task = asyncio.get_running_loop().create_task(run.go(), name=run.uid, context=contextvars.Context())
        run.own(task)
        self.runs[run.uid] = run
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._forget(run, task))

    def _forget(self, run: Run, task: asyncio.Task[None]) -> None:
        self.runs.pop(run.uid, None)
        self._tasks.discard(task)


async def _named(served: Served, step: Coroutine[Any, Any, None]) -> None:
    """A step of the start of one model, whose failure says of which."""
    try:
        await step
    except Exception as error:  # Whatever it is: a model brings its own code and its own ways to fail.
        raise EngineDown(f"{served.name}: {error}") from error


def _shorten(order: Order, served: Served, plan: Plan) -> Shorten:
    """Makes the compaction of everything that was told and said."""

    def make(output: Sequence[Mapping[str, Any]], spent: int) -> Awaitable[tuple[Compaction, int] | None]:
        return shorten(order, served, [*plan.items, *output], plan.images, spent)

    return make


def _row(order: Order, uid: str, now: int, before: Context) -> Response:
    return Response(
        uid=uid,
        project=order.project,
        key_id=order.key,
        model=order.model,
        status=Status.QUEUED if order.background else Status.IN_PROGRESS,
        background=order.background,
        streamed=order.stream,
        stored=order.store,
        thread=before.thread or uid,
        previous_uid=order.previous_response_id,
        conversation_id=before.conversation,
        history=list(before.keys),
        # jsonb cannot hold NUL; the log keeps the exact value.
        metadata={key.replace("\0", ""): value.replace("\0", "") for key, value in order.metadata.items()},
        created_at=datetime.fromtimestamp(now, UTC),
    )


_current: Hub | None = None


def current() -> Hub:
    """The hub of this process, made from the settings at first use. Its engines start with `start`, or with the first request."""
    global _current
    if _current is None:
        served = read(settings.RESPONSES_MODELS)
        _current = Hub(served, aliases(settings.RESPONSES_ALIASES, served))
    return _current


def use(hub: Hub | None) -> None:
    """Put another hub in its place."""
    global _current
    _current = hub
