"""Run manager: the runs of this process, the engines, the recorder and the lease keeper."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings

from responses_app.engine_interface import EngineUnavailable
from responses_app.errors import DatabaseFull, ServiceUnavailable
from responses_app.models import Response
from responses_app.runs.admission import Admission, Kind, Place
from responses_app.runs.compaction import compact
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.runs.execute.run import Run
from responses_app.runs.ids import new_id
from responses_app.runs.input_tokens import count_input_tokens
from responses_app.runs.maintenance import upkeep
from responses_app.runs.models import ServedModel, find_model, models_from_settings, opening_state, start_all
from responses_app.runs.new_run import NOTHING_KNOWN, KnownContext, RunOwner, prepare_run, wait_created
from responses_app.runs.prepare.planner import PreparedRequest, Reserve
from responses_app.runs.recover.lease_keeper import LeaseKeeper
from responses_app.runs.recover.log_follower import LogFollower
from responses_app.runs.recover.services import Services
from responses_app.runs.recover.takeover import take_over
from responses_app.runs.recover.warm_up import WarmUp
from responses_app.runs.server_tools.executors import ToolFactory, server_tools
from responses_app.runs.start_queue import StartQueue
from responses_app.store.cluster import leases
from responses_app.store.cluster.start_locks import StartLocks
from responses_app.store.log.rows.repeat_lookups import RepeatLookups
from responses_app.store.log.writer import LogWriter
from responses_app.store.storage_report.storage_state import storage_state
from responses_app.tools.mcp.session_pool import session_pool

logger = logging.getLogger("responses.runs")

STOP_LIMIT = 5.0
# Seconds until a response must have ended that another process runs, or whose process has died.
END_LIMIT = 15.0
# Seconds between checks for requests at the end of a drain.
DRAIN_CHECK_S = 0.02
MAX_EVENT_NUMBER = 2**31 - 1


class RunManager:
    """Manager of the runs of a process and event loop. Call `start` before use; `drain`, then `close`, at the end."""

    def __init__(
        self, served: Mapping[str, ServedModel], aliases: Mapping[str, str] | None = None, tools_for: ToolFactory = server_tools
    ) -> None:
        self.served, self.aliases, self._tools_for = served, aliases or {}, tools_for
        self.runs: dict[str, Run] = {}
        self.admission, self.starts = Admission(), StartQueue()
        # Leaving soon: `/health/ready` asks load balancers to send no more, and responses are still accepted.
        # Draining: no new responses. Leaving: the process ends, and clients that lose their connection have not left.
        self.draining = self.leaving = self.is_leaving_soon = False
        # The server answers already, and the models are downloaded or loaded: requests for responses are refused.
        self.opening = False
        # Set when the drain begins: only requests on HTTP connections that a proxy has kept still begin responses.
        self.stopping = asyncio.Event()
        self.services: Services | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()

    async def start(self) -> Services:
        """Load all dialects, start all engines side by side, and start the services. A second call only returns the services.

        Raises EngineUnavailable, which names the model. After an error or a cancellation no engine is left running.
        """
        async with self._starting:
            if self.services is None:
                await start_all(self.served)
                lease_keeper = LeaseKeeper(
                    self.served, self.runs.values, self._free_slots, lambda: not self.is_stopping, self._take_over
                )
                maintenance = asyncio.get_running_loop().create_task(
                    upkeep(self.served), name="upkeep", context=contextvars.Context()
                )
                log_follower = LogFollower(lease_keeper.worker, lease_keeper.wake, self._cancelled, self._repeated)
                warm_up, locks, lookups = WarmUp(self.served), StartLocks(), RepeatLookups()
                self.services = Services(LogWriter(), lease_keeper, log_follower, maintenance, warm_up, locks, lookups)
                await self.services.warm_up.finish()
            return self.services

    def model(self, name: str) -> ServedModel:
        """Return the served model with the name `name`. Raises InvalidRequest `model_not_found` (status 400)."""
        return find_model(name, self.served, self.aliases)

    async def worker(self) -> UUID:
        """Return the worker id of this process. Raises ServiceUnavailable."""
        return (await self._ensure_started()).lease_keeper.worker

    @asynccontextmanager
    async def start_lock(self, fingerprint: str) -> AsyncIterator[None]:
        """Hold off equal requests of all processes until the response to this one has begun. Raises ServiceUnavailable."""
        async with (await self._ensure_started()).start_locks.hold(fingerprint):
            yield

    async def find_repeated(self, fingerprint: str) -> Response | None:
        """Find the response to which a repeated request belongs. Raises ServiceUnavailable, DatabaseError."""
        pk = await (await self._ensure_started()).repeat_lookups.find(fingerprint)
        return None if pk is None else await Response.objects.filter(pk=pk).afirst()

    async def start_run(
        self, create_request: CreateRequest, known: KnownContext = NOTHING_KNOWN
    ) -> tuple[Run, PreparedRequest]:
        """Prepare a request, start the run, and wait until the first events are durable. Return the run and the prepared request.

        Raises ApiError; then nothing was stored. A background run without a free place waits in the queue.
        """
        services = await self._ensure_started()
        served = self.model(create_request.model)
        place = await self._admit(create_request, services)
        try:
            owner = RunOwner(services.recorder, None if place.kind is Kind.QUEUED else services.lease_keeper.worker)
            run, prepared = await prepare_run(create_request, served, owner, self._tools_for, known)
        except BaseException:
            place.release()
            raise
        self._spawn(run, place, services)
        await wait_created(run, prepared)
        if run.queued:
            services.notify_work()
        return run, prepared

    async def count(self, create_request: CreateRequest) -> int:
        """Count the tokens of the first prompt of a request. Raises ApiError as `start_run` does; nothing is generated or stored."""
        await self._ensure_started()
        served = self.model(create_request.model)
        self._check_capacity()
        with self.admission.admitted(create_request.project):
            uid = new_id("resp_")
            return await count_input_tokens(uid, create_request, served, self._tools_for(create_request, uid))

    async def compact(self, create_request: CreateRequest, reserve: Reserve | None = None) -> dict[str, Any]:
        """Return the `response.compaction` object. Raises ApiError; nothing is stored."""
        await self._ensure_started()
        self._check_capacity()
        with self.admission.admitted(create_request.project):
            return await compact(create_request, self.model(create_request.model), reserve)

    def subscribe(self, response: Run | Response, after: int = -1, push: Push | None = None) -> FrameBatches:
        """Yield batches of frames above the number `after` up to the terminal frame; an empty batch after each silent pause.

        `response` is a run of this process or a row. The frames of a run come from memory, except those that `push` takes. The frames
        of other processes, and of the next owners of a run that is handed over, come from the log.
        """
        if isinstance(response, Run):
            run = response
        elif response.uid in self.runs:
            run = self.runs[response.uid]
        else:
            return self._follow(response.pk, after)
        return run.broadcast.subscribe(after, settings.RESPONSES_HEARTBEAT, partial(self._follow_next_owner, run), push)

    async def _follow(self, pk: int, after: int) -> FrameBatches:
        log_follower = (await self._ensure_started()).log_follower
        async with aclosing(log_follower.follow(pk, after, settings.RESPONSES_HEARTBEAT)) as batches:
            async for batch in batches:
                yield batch

    async def _follow_next_owner(self, run: Run, after: int) -> FrameBatches:
        # While the process ends there is no time to wait for another one: the client reconnects by itself.
        if run.publisher.pk is not None and not self.leaving:
            async with aclosing(self._follow(run.publisher.pk, after)) as batches:
                async for batch in batches:
                    yield batch

    def client_disconnected(self, run: Run) -> None:
        """Cancel the run of a client that has disconnected, unless RESPONSES_FINISH_ON_DISCONNECT lets stored runs finish.

        A client that loses its connection because this process ends has not left. A repeated request follows the run to the end.
        """
        may_finish = run.publisher.is_stored and (self.leaving or settings.RESPONSES_FINISH_ON_DISCONNECT)
        if not run.broadcast.ended and not may_finish and not run.is_repeated:
            run.cancel()

    async def keep_for_repeat(self, row: Response) -> None:
        """Let a response go on when the first client leaves, in any process, because the request was sent again."""
        if row.uid in self.runs:
            self.runs[row.uid].is_repeated = True
        elif row.ended_at is None:
            (await self._ensure_started()).log_follower.notify_repeat(row.pk)

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
        services = await self._ensure_started()
        services.log_follower.notify_cancel(row.pk)
        services.notify_work()
        try:
            async with asyncio.timeout(END_LIMIT), aclosing(services.log_follower.follow(row.pk, MAX_EVENT_NUMBER)) as batches:
                async for _ in batches:
                    pass
        except TimeoutError:
            raise ServiceUnavailable("The process that runs this response does not answer. Try again in a moment.") from None

    def stop_draining(self) -> None:
        """Skip the drain: do not cancel the runs of clients that lose the connection from now on."""
        self.draining = self.leaving = True

    @property
    def is_stopping(self) -> bool:
        """Return True from the beginning of the drain."""
        return self.draining or self.stopping.is_set()

    async def drain(self, seconds: float, may_come: Callable[[], bool] = lambda: False) -> None:
        """Give running responses up to `seconds` to end, hand over the rest, and then accept no new responses.

        While `may_come` returns True, a request is received, or a proxy may have sent one; requests are still answered.
        """
        self.stopping.set()
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        while (self.admission.counts.total() or may_come()) and (left_s := deadline - clock()) > 0:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=left_s)
            else:
                await asyncio.sleep(min(DRAIN_CHECK_S, left_s))
        await self._hand_over()

    async def close(self) -> None:
        """Hand over the runs, write the queued appends, end the programs of tools, stop the engines."""
        await self._hand_over()
        await session_pool().close()
        if self.services is not None:
            await self.services.close(STOP_LIMIT)
        for served in self.served.values():
            await served.engine.close()

    async def _hand_over(self) -> None:
        """Hand over stored runs to other processes and end the others. Leases are released after all appends are written."""
        self.draining = self.leaving = True
        if self.services is not None:
            await self.services.lease_keeper.stop()
        for run in list(self.runs.values()):
            if run.publisher.is_stored:
                run.hand_over()
            else:
                run.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_LIMIT)
        if self.services is not None:
            await self.services.release_runs()

    async def _ensure_started(self) -> Services:
        """Start unless started. Raises ServiceUnavailable, also while the models are downloaded or loaded."""
        if self.opening:
            raise ServiceUnavailable(f"{'; '.join(map(opening_state, self.served.values()))}. Try again in a moment.")
        try:
            return await self.start()
        except EngineUnavailable as error:
            logger.error("the server cannot start: %s", error)
            raise ServiceUnavailable("The engine of this server did not start. Try again in a moment.") from error

    def _check_capacity(self) -> None:
        if self.draining:
            raise ServiceUnavailable("The server is stopping. Try again in a moment.")

    async def _admit(self, create_request: CreateRequest, services: Services) -> Place:
        """Take a place for the request. Raises RateLimited, ServiceUnavailable. Background work does not delay the foreground."""
        self._check_capacity()
        if storage_state.is_full:
            raise DatabaseFull
        if not create_request.background:
            return self.admission.admit(create_request.project)
        return await self.admission.admit_background(queue=services.lease_keeper.backlog)

    def _free_slots(self) -> int:
        return 0 if self.is_stopping else self.admission.free_background_slots

    async def _take_over(self, pk: int) -> None:
        """Continue a response whose lease this process holds."""
        services = await self.start()
        run = await take_over(pk, RunOwner(services.recorder, services.lease_keeper.worker), self.served, self._tools_for)
        if run is not None and not self.leaving:
            self._spawn(run, self.admission.take(Kind.BACKGROUND if run.background else Kind.FOREGROUND), services)

    def _spawn(self, run: Run, place: Place, services: Services) -> None:
        # With an empty context the run does not inherit the database thread of the request that started it.
        task = asyncio.get_running_loop().create_task(_drive(run, place), name=run.uid, context=contextvars.Context())
        run.keep_task(task)
        run.broadcast.on_frames = partial(services.log_follower.notify_events, run)
        self.runs[run.uid] = run
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._on_run_finished(run, task, place))
        if run.background:
            task.add_done_callback(lambda _: services.lease_keeper.wake())

    def _on_run_finished(self, run: Run, task: asyncio.Task[None], place: Place) -> None:
        if self.runs.get(run.uid) is run:
            del self.runs[run.uid]
        self._tasks.discard(task)
        # A task that was cancelled before its first step has not released its place.
        place.release()
        run.detach()

    def _cancelled(self, pk: int) -> None:
        if (run := self._run(pk)) is not None:
            run.cancel()

    def _repeated(self, pk: int) -> None:
        if (run := self._run(pk)) is not None:
            run.is_repeated = True

    def _run(self, pk: int) -> Run | None:
        return next((run for run in self.runs.values() if run.publisher.pk == pk), None)


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
        _current = RunManager(*models_from_settings())
    return _current


def set_current(hub: RunManager | None) -> None:
    """Replace the manager of this process."""
    global _current
    _current = hub
