"""The hub owns every run of this process, the engines that serve them, and the recorder that keeps them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import re
import time
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from responses_app.dialects.base import BadTurn, Dialect, Turn
from responses_app.engines.border import BadPrompt, Constraint, Engine, EngineDown, Request, Sampling
from responses_app.errors import Busy, Invalid, Unavailable
from responses_app.grammar.writer import Writer
from responses_app.models import Response
from responses_app.runs import context, shape
from responses_app.runs.ids import mint
from responses_app.runs.order import Order
from responses_app.runs.run import Run
from responses_app.runs.served import Served, read
from responses_app.store.history import Context
from responses_app.store.recorder import Recorder
from responses_app.store.records import Log

logger = logging.getLogger("responses.hub")

STOP_LIMIT = 5.0
LEAST_TOP_P = 1e-6


class Hub:
    """One per process and event loop. `start` before use; `drain`, then `close`, at the end."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        self.served = served
        self.runs: dict[str, Run] = {}
        self.draining = False
        self._recorder: Recorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
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

    def model(self, name: str) -> Served:
        """The served model of that name. Raises Invalid `model_not_found` (400: responses-api.md D9)."""
        served = self.served.get(name)
        if served is None:
            raise Invalid(f"The requested model '{name}' does not exist.", param="model", code="model_not_found")
        return served

    async def begin(self, order: Order) -> Run:
        """Check what needs the model and the history, let the run go, and wait until its first events are kept.

        Raises ApiError, and then nothing was kept.
        """
        try:
            await self.start()
        except EngineDown as error:
            logger.error("no start: %s", error)
            raise Unavailable("The engine of this server did not start. Try again in a moment.") from error
        served = self.model(order.model)
        self._admit()
        before = await context.before(order)
        own = await context.resolve(order)
        context.distinct(before.items, own)
        items = context.pair([*before.items, *own])
        context.asks_for_json(order, items)
        run = await self._plan(
            order,
            served,
            before,
            own,
            Turn(
                items=items,
                today=datetime.now(UTC).date(),
                instructions=order.instructions,
                tools=order.tools,
                tool_choice=order.tool_choice,
                parallel_tool_calls=order.parallel_tool_calls,
                effort=(order.reasoning or {}).get("effort"),
                format=order.format,
            ),
        )
        if not await served.engine.alive():
            raise Unavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.")
        self._let_go(run)
        await run.opened()
        return run

    async def drain(self, seconds: float) -> None:
        """Accept nothing new and give what runs up to `seconds` to end."""
        self.draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self) -> None:
        """End what still runs, write what is queued, stop the engines."""
        self.draining = True
        for run in list(self.runs.values()):
            run.leave()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_LIMIT)
        if self._recorder is not None:
            await self._recorder.close()
        for served in self.served.values():
            await served.engine.close()

    def _admit(self) -> None:
        if self.draining:
            raise Unavailable("The server is stopping. Try again in a moment.")
        if len(self.runs) >= settings.RESPONSES_MAX_CONCURRENT:
            raise Busy(f"{len(self.runs)} responses are being generated, which is the limit. Try again in a moment.")

    async def _plan(self, order: Order, served: Served, before: Context, own: list[dict[str, object]], turn: Turn) -> Run:
        assert served.dialect is not None  # noqa: S101 - started
        assert self._recorder is not None  # noqa: S101 - started
        # Where the request's own items begin among those of the turn.
        mine = {id(one) for one in own}
        first = next((place for place, item in enumerate(turn.items) if id(item) in mine), len(turn.items))
        request = await asyncio.to_thread(_request, order, served, served.dialect, turn, first)
        now = int(time.time())
        uid = request.id
        log = Log(_row(order, uid, now, before), own) if order.store else None
        return Run(
            Writer(shape.birth(order, served, uid, now), mint),
            served.engine,
            request,
            served.dialect.listen(turn),
            recorder=self._recorder,
            log=log,
            patient=settings.RESPONSES_DURABILITY == "visible",
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


def _request(order: Order, served: Served, dialect: Dialect, turn: Turn, first: int) -> Request:
    """The engine's request. Raises Invalid for what this model cannot be told and for a prompt that does not fit."""
    try:
        prompt, constraint = dialect.render(turn), dialect.constrain(turn)
    except BadTurn as error:
        raise Invalid(str(error), param=_blame(error.param, first), code=error.code) from error
    _check(served.engine, order, constraint)
    room = served.engine.max_model_len - len(prompt)
    if room < 1:
        raise Invalid(
            "Your input exceeds the context window of this model. Please adjust your input and try again. "
            f"({len(prompt)} tokens of {served.engine.max_model_len})",
            param="input",
            code="context_length_exceeded",
        )
    sampling = Sampling(
        max_tokens=min(room, order.max_output_tokens or room),
        temperature=shape.temperature(order, served),
        # Zero leaves the most likely token alone, and so does any number as small; vLLM takes no zero.
        top_p=shape.top_p(order, served) or LEAST_TOP_P,
        presence_penalty=order.presence_penalty,
        frequency_penalty=order.frequency_penalty,
        ignore_eos=order.ignore_eos,
        stop_token_ids=dialect.stop_token_ids,
    )
    return Request(mint("resp_"), prompt, sampling, constraint)


def _check(engine: Engine, order: Order, constraint: Constraint | None) -> None:
    """Have what is to be obeyed compiled before anything runs; a strict schema must be obeyed in full. Raises Invalid."""
    schema = order.format.get("schema")
    try:
        if schema is not None and order.format.get("strict"):
            engine.check(Constraint("json", schema))
        if constraint is not None:
            engine.check(constraint)
    except BadPrompt as error:
        where, code = (
            ("text.format.schema", "invalid_json_schema") if schema is not None else ("tools", "invalid_function_parameters")
        )
        raise Invalid(f"Invalid schema: {' '.join(str(error).split())}", param=where, code=code) from error


def _blame(param: str | None, first: int) -> str | None:
    """A dialect counts all items of a turn; the client knows those of its request."""
    place = re.fullmatch(r"input\[(\d+)\](.*)", param or "", re.DOTALL)
    if place is None:
        return param
    own = int(place[1]) - first
    return f"input[{own}]{place[2]}" if own >= 0 else "previous_response_id"


def _row(order: Order, uid: str, now: int, before: Context) -> Response:
    return Response(
        uid=uid,
        project=order.project,
        key_id=order.key,
        model=order.model,
        thread=before.thread or uid,
        previous_uid=order.previous_response_id,
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
        _current = Hub(read(settings.RESPONSES_MODELS))
    return _current


def use(hub: Hub | None) -> None:
    """Put another hub in its place."""
    global _current
    _current = hub
