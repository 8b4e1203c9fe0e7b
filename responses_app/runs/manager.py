"""Run manager: the runs of this process, the engines, the recorder and the lease keeper."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from math import ceil
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import EngineUnavailable
from responses_app.errors import InvalidRequest, RateLimited, ServiceUnavailable
from responses_app.models import Response
from responses_app.runs.admission import Admission, Kind, Place
from responses_app.runs.compaction import compact, make_compaction_hook
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.runs.execute.endings import OVERLOADED_MESSAGE
from responses_app.runs.execute.factory import ToolFactory, create_run
from responses_app.runs.execute.run import Run
from responses_app.runs.ids import new_id
from responses_app.runs.input_tokens import count_input_tokens
from responses_app.runs.maintenance import upkeep
from responses_app.runs.models import (
    ServedModel,
    check_default,
    check_limits,
    opening_state,
    parse_aliases,
    parse_models,
    resolve_alias,
    start_all,
)
from responses_app.runs.prepare.planner import PreparedRequest, plan
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.runs.recover.lease_keeper import LeaseKeeper
from responses_app.runs.recover.log_follower import LogFollower
from responses_app.runs.recover.takeover import take_over
from responses_app.runs.server_tools import approvals
from responses_app.runs.server_tools.executors import server_tools
from responses_app.runs.start_queue import StartQueue
from responses_app.store.cluster import leases
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.writer import LogWriter

logger = logging.getLogger("responses.runs")

STOP_LIMIT = 5.0
# Seconds until a response must have ended that another process runs, or whose process has died.
END_LIMIT = 15.0
MAX_EVENT_NUMBER = 2**31 - 1
LONGEST_NAME = 200
# Settings with numbers by model.
LIMITS_BY_MODEL = ("RESPONSES_MAX_OUTPUT_TOKENS", "RESPONSES_DEFAULT_OUTPUT_TOKENS", "RESPONSES_MAX_RUN_SECONDS")


class RunManager:
    """Manager of the runs of a process and event loop. Call `start` before use; `drain`, then `close`, at the end."""

    def __init__(
        self,
        served: Mapping[str, ServedModel],
        aliases: Mapping[str, str] | None = None,
        tools_for: ToolFactory = server_tools,
    ) -> None:
        self.served, self.aliases, self._tools_for = served, aliases or {}, tools_for
        self.runs: dict[str, Run] = {}
        self.admission, self.starts = Admission(), StartQueue()
        # Draining: no new responses. Leaving: the process ends, and clients that lose their connection have not left.
        self.draining = self.leaving = False
        # The server answers already, and the models are downloaded or loaded: requests for responses are refused.
        self.opening = False
        # Set when the drain begins.
        self.stopping = asyncio.Event()
        self._recorder: LogWriter | None = None
        self._lease_keeper: LeaseKeeper | None = None
        self._log_follower: LogFollower | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._maintenance: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Load all dialects, start all engines side by side, the recorder and the lease keeper. A second call does nothing.

        Raises EngineUnavailable, which names the model. After an error or a cancellation no engine is left running.
        """
        async with self._starting:
            if self._recorder is not None:
                return
            await start_all(self.served)
            self._recorder = LogWriter()
            self._lease_keeper = LeaseKeeper(
                self.served, self.runs.values, self._free_slots, lambda: not self.draining, self._take_over
            )
            self._log_follower = LogFollower(self._lease_keeper.wake, self._cancelled)
            # An empty context, as for a run.
            self._maintenance = asyncio.get_running_loop().create_task(upkeep(), name="upkeep", context=contextvars.Context())

    def model(self, name: str) -> ServedModel:
        """Return the served model with the name `name`. Raises InvalidRequest `model_not_found` (status 400)."""
        served = resolve_alias(name, self.served, self.aliases)
        if served is None:
            shown_name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
            raise InvalidRequest(f"The requested model '{shown_name}' does not exist.", param="model", code="model_not_found")
        return served

    async def worker(self) -> UUID:
        """Return the worker id of this process. Raises ServiceUnavailable."""
        await self._ensure_started()
        assert self._lease_keeper is not None  # noqa: S101 - started
        return self._lease_keeper.worker

    async def start_run(
        self, create_request: CreateRequest, before: ConversationContext | None = None, memo: TokenCache | None = None
    ) -> tuple[Run, PreparedRequest]:
        """Prepare a request, start the run, and wait until the first events are durable. Return the run and the plan.

        Raises ApiError; then nothing was stored. A background run without a free place waits in the queue. `before` is the known
        context, `memo` caches the tokens of the prompt.
        """
        await self._ensure_started()
        served = self.model(create_request.model)
        place = await self._admit_background(create_request)
        try:
            run, planned = await self._prepare(create_request, served, before, memo, place)
        except BaseException:
            place.release()
            raise
        self._spawn(run, place)
        await run.wait_created()
        if run.queued:
            self._notify_work()
        return run, planned

    async def _prepare(
        self,
        create_request: CreateRequest,
        served: ServedModel,
        before: ConversationContext | None,
        memo: TokenCache | None,
        place: Place,
    ) -> tuple[Run, PreparedRequest]:
        """Plan the request and create the run, without a start."""
        uid = new_id("resp_")
        tools = self._tools_for(create_request, uid)
        planned = await plan(PromptContext(uid, create_request, served, tools, token_cache=memo), before)
        assert self._recorder is not None and self._lease_keeper is not None  # noqa: PT018, S101 - started
        parked = place.kind is Kind.QUEUED
        worker = None if parked else self._lease_keeper.worker
        compaction = make_compaction_hook(create_request, planned)
        run = create_run(uid, create_request, served, planned, self._recorder, worker, tools, compaction)
        if not parked and not await served.engine.is_healthy():
            raise ServiceUnavailable(f"The engine of '{served.name}' does not answer. Try again in a moment.")
        if not parked and (refusal_s := served.engine.refusal_s):
            raise RateLimited(OVERLOADED_MESSAGE, retry_after=ceil(refusal_s))
        # Last, so that a refused request uses no denial.
        await approvals.claim_denials(create_request, planned.context.items, planned.context.input_items, uid)
        return run, planned

    async def count(self, create_request: CreateRequest) -> int:
        """Count the tokens of the first prompt of a request. Raises ApiError as `start_run` does; nothing is generated or stored."""
        await self._ensure_started()
        served = self.model(create_request.model)
        self._check_capacity()
        with self.admission.admitted(create_request.project):
            uid = new_id("resp_")
            return await count_input_tokens(uid, create_request, served, self._tools_for(create_request, uid))

    async def compact(self, create_request: CreateRequest) -> dict[str, Any]:
        """Return the `response.compaction` object. Raises ApiError; nothing is stored."""
        await self._ensure_started()
        self._check_capacity()
        with self.admission.admitted(create_request.project):
            return await compact(create_request, self.model(create_request.model))

    def subscribe(self, source: Run | Response, after: int = -1, push: Push | None = None) -> FrameBatches:
        """Yield batches of frames up to the terminal frame, across changes of the owner; an empty batch after each silent pause.

        The frames of a run of this process come from memory, except those that `push` takes; those of other processes from the log.
        """
        if isinstance(source, Response):
            run = self.runs.get(source.uid)
            if run is None:
                return self._follow_row(source.pk, after)
        else:
            run = source
        return run.broadcast.subscribe(after, settings.RESPONSES_HEARTBEAT, partial(self._follow_log, run), push)

    async def _follow_row(self, pk: int, after: int) -> FrameBatches:
        await self._ensure_started()
        assert self._log_follower is not None  # noqa: S101 - started
        async with aclosing(self._log_follower.follow(pk, after, settings.RESPONSES_HEARTBEAT)) as batches:
            async for batch in batches:
                yield batch

    async def _follow_log(self, run: Run, after: int) -> FrameBatches:
        # While the process ends there is no time to wait for another one: the client reconnects by itself.
        if run.publisher.pk is not None and not self.leaving and self._log_follower is not None:
            async with aclosing(self._log_follower.follow(run.publisher.pk, after, settings.RESPONSES_HEARTBEAT)) as batches:
                async for batch in batches:
                    yield batch

    def client_disconnected(self, run: Run) -> None:
        """Cancel the run of a client that has disconnected, unless RESPONSES_FINISH_ON_DISCONNECT lets stored runs finish.

        A client that loses its connection because this process ends has not left.
        """
        if self.leaving and run.publisher.is_stored:
            return
        if not run.broadcast.ended and not (run.publisher.is_stored and settings.RESPONSES_FINISH_ON_DISCONNECT):
            run.cancel()

    async def cancel(self, row: Response) -> None:
        """Cancel a response, in any process; do nothing if the response has ended. Raises ServiceUnavailable after END_LIMIT seconds."""
        run = self.runs.get(row.uid)
        if run is not None:
            run.cancel()
            await run.wait_terminal()
            if not run.broadcast.handed_over:
                return
        if not await sync_to_async(leases.cancel)(row.pk):
            return
        await self._ensure_started()
        assert self._log_follower is not None  # noqa: S101 - started
        self._log_follower.notify_cancel(row.pk)
        self._notify_work()
        try:
            async with asyncio.timeout(END_LIMIT), aclosing(self._log_follower.follow(row.pk, MAX_EVENT_NUMBER)) as batches:
                async for _ in batches:
                    pass
        except TimeoutError:
            raise ServiceUnavailable("The process that runs this response does not answer. Try again in a moment.") from None

    def stop_draining(self) -> None:
        """Skip the drain: do not cancel the runs of clients that lose the connection from now on."""
        self.draining = self.leaving = True

    async def drain(self, seconds: float) -> None:
        """Accept no new responses, give running responses up to `seconds` to end, and hand over the rest."""
        self.draining = True
        self.stopping.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        await self._hand_over()

    async def close(self) -> None:
        """Hand over the runs, write the queued appends, stop the engines."""
        await self._hand_over()
        if self._maintenance is not None:
            self._maintenance.cancel()
            await asyncio.wait({self._maintenance}, timeout=STOP_LIMIT)
        if self._log_follower is not None:
            await self._log_follower.close()
        for served in self.served.values():
            await served.engine.close()

    async def _hand_over(self) -> None:
        """Hand over stored runs to other processes and end the others. Leases are released after all appends are written."""
        self.draining = self.leaving = True
        if self._lease_keeper is not None:
            await self._lease_keeper.stop()
        for run in list(self.runs.values()):
            if run.publisher.is_stored:
                run.hand_over()
            else:
                run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_LIMIT)
        if self._recorder is not None:
            await self._recorder.close()
        if self._lease_keeper is not None and self._log_follower is not None:
            await self._lease_keeper.release_leases()
            self._log_follower.notify_work()

    async def _ensure_started(self) -> None:
        """Start unless started. Raises ServiceUnavailable, also while the models are downloaded or loaded."""
        if self.opening:
            raise ServiceUnavailable(f"{'; '.join(map(opening_state, self.served.values()))}. Try again in a moment.")
        try:
            await self.start()
        except EngineUnavailable as error:
            logger.error("no start: %s", error)
            raise ServiceUnavailable("The engine of this server did not start. Try again in a moment.") from error

    def _check_capacity(self) -> None:
        if self.draining:
            raise ServiceUnavailable("The server is stopping. Try again in a moment.")

    async def _admit_background(self, create_request: CreateRequest) -> Place:
        """Take a place for the request. Raises RateLimited, ServiceUnavailable. Background work does not delay the foreground."""
        self._check_capacity()
        if not create_request.background:
            return self.admission.admit(create_request.project)
        assert self._lease_keeper is not None  # noqa: S101 - started
        return await self.admission.admit_background(queue=self._lease_keeper.backlog)

    def _free_slots(self) -> int:
        """Return how many more background responses may begin in this process."""
        return 0 if self.draining else self.admission.free_background_slots

    async def _take_over(self, pk: int) -> None:
        """Continue a response whose lease this process holds."""
        assert self._recorder is not None and self._lease_keeper is not None  # noqa: PT018, S101 - started
        run = await take_over(pk, self._lease_keeper.worker, self.served, self._recorder, self._tools_for)
        if run is not None and not self.leaving:
            self._spawn(run, self.admission.take(Kind.BACKGROUND if run.background else Kind.FOREGROUND))

    def _spawn(self, run: Run, place: Place) -> None:
        # With an empty context the run does not inherit the database thread of the request that started it.
        task = asyncio.get_running_loop().create_task(_drive(run, place), name=run.uid, context=contextvars.Context())
        run.keep_task(task)
        if self._log_follower is not None:
            run.broadcast.on_frames = partial(self._log_follower.notify_events, run)
        self.runs[run.uid] = run
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._on_run_finished(run, task, place))

    def _on_run_finished(self, run: Run, task: asyncio.Task[None], place: Place) -> None:
        if self.runs.get(run.uid) is run:
            del self.runs[run.uid]
        self._tasks.discard(task)
        # A task that was cancelled before its first step has not released its place.
        place.release()
        run.detach()
        if run.background and self._lease_keeper is not None:
            self._lease_keeper.wake()

    def _cancelled(self, pk: int) -> None:
        for run in self.runs.values():
            if run.publisher.pk == pk:
                run.cancel()

    def _notify_work(self) -> None:
        """Notify this process and the others that there is a lease to claim."""
        if self._lease_keeper is not None and self._log_follower is not None:
            self._lease_keeper.wake()
            self._log_follower.notify_work()


async def _drive(run: Run, place: Place) -> None:
    """Run to the end and release the place in the same step: a client that has seen the end can start another run."""
    try:
        await run.run()
    finally:
        place.release()


_current: RunManager | None = None


def current() -> RunManager:
    """Return the manager of this process, created from the settings at first use. The engines start with `start` or the first request."""
    global _current
    if _current is None:
        served = parse_models(settings.RESPONSES_MODELS)
        others = parse_aliases(settings.RESPONSES_ALIASES, served)
        for name in LIMITS_BY_MODEL:
            check_limits(name, getattr(settings, name), served)
        check_default(settings.RESPONSES_DEFAULT_MODEL, served, others)
        _current = RunManager(served, others)
    return _current


def set_current(hub: RunManager | None) -> None:
    """Replace the manager of this process."""
    global _current
    _current = hub
