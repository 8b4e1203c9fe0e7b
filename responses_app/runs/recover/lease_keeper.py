"""Lease keeper: heartbeats of this process, and take-over of responses without a running owner.

Every BEAT seconds the keeper writes a heartbeat, reads its leases and claims free ones: responses of dead processes, responses
that were released, and responses in the queue. A notification triggers this at once. The keeper starts runs for leases without a
run, and stops runs without a lease.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from math import inf
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.db import Error

from responses_app.runs.execute.run import Run
from responses_app.store.cluster import leases
from responses_app.store.cluster.leases import WORKER_TIMEOUT_S, HeldLease
from responses_app.store.db import check_connection
from responses_app.store.log.rows.event_codec import packing

logger = logging.getLogger("responses.watch")

BEAT = 1.0
# Leases to claim per heartbeat.
MAX_CLAIMS = 128
STOP_LIMIT = 5.0
# Seconds that a take-over may take, up to the start of the run, before it is tried again.
TAKEOVER_LIMIT_S = 300.0
# After missing heartbeats for so many seconds this process may count as dead, so it must not claim the leases of other workers.
GAP = 3 * BEAT
TIDY_EVERY = 60.0


class DatabaseClock:
    """Clock of the database, compared with one that never jumps."""

    def __init__(self) -> None:
        self._offset: float | None = None
        self._delay = 0.0

    def has_jumped(self, clock: float, asked: float, now: float) -> bool:
        """Return whether the clock may have jumped since the last call: then all other workers look dead until their next heartbeat.

        `asked` is the time of the question, and `now` that of the answer. A busy process may read an answer late, which looks like
        a jump and is not logged as one.
        """
        last, late = self._offset, self._delay
        self._offset, self._delay = clock - now, now - asked
        jump = 0.0 if last is None else self._offset - last
        if jump > GAP + late or jump < -GAP - self._delay:
            logger.warning("the clock of the database has jumped by %.0f s; check its time synchronization", jump)
        return abs(jump) > GAP


class LeaseKeeper:
    """Keeper of the leases of a process.

    `runs` returns the runs of this process, `free_slots` how many queued responses may begin, `takes` whether other responses may be
    taken over; `adopt` starts the run of a lease.
    """

    def __init__(
        self,
        models: Iterable[str],
        runs: Callable[[], Iterable[Run]],
        free_slots: Callable[[], int],
        takes: Callable[[], bool],
        adopt: Callable[[int], Awaitable[None]],
    ) -> None:
        self.worker: UUID = uuid4()
        # Whether responses were in the queue at the last heartbeat: new ones queue behind them.
        self.backlog = False
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._models = list(models)
        self._runs, self._free_slots, self._takes, self._adopt = runs, free_slots, takes, adopt
        self._wake = asyncio.Event()
        # A new process has missed nothing: if it sees no heartbeats of others, these are dead.
        self._sure_since, self._beaten = -inf, inf
        self._clock = DatabaseClock()
        self._known = self._stopped = self._mended = False
        self._tidied = time.monotonic()
        self._doubts: set[tuple[str, int]] = set()
        self._adopting: dict[int, asyncio.Task[None]] = {}
        self._task = asyncio.get_running_loop().create_task(self._go(), name="watch", context=contextvars.Context())

    def wake(self) -> None:
        """Trigger the next heartbeat at once."""
        self._wake.set()

    async def stop(self) -> None:
        """Stop. The leases stay, for as long as other processes consider this process alive."""
        # A cancellation during a database call can be lost, so the flag is set too.
        self._stopped = True
        tasks = [self._task, *self._adopting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=STOP_LIMIT)

    async def release_leases(self) -> None:
        """Release all leases, so that other processes continue the responses at once."""
        if not self._known:
            return
        try:
            released = await asyncio.wait_for(sync_to_async(leases.release_all)(self.worker), STOP_LIMIT)
        except (Error, TimeoutError) as error:
            logger.warning(
                "the leases of responses were not released, other processes claim these in %.0f s: %s", WORKER_TIMEOUT_S, error
            )
        else:
            if released:
                logger.info("%d responses were released for other processes to continue", released)

    async def _go(self) -> None:
        while not self._stopped:
            try:
                await self._tick()
            except Error as error:
                logger.warning("the heartbeat of this process cannot be stored: %s", str(error).strip())
                # The next heartbeat needs a working connection and comes at once: a silent process counts as dead.
                await sync_to_async(check_connection)()
                if not self._mended:
                    self._mended = True
                    self._wake.set()
            except Exception:
                logger.exception("the heartbeat failed")
            if self._stopped:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BEAT)
            self._wake.clear()

    async def _tick(self) -> None:
        asked = time.monotonic()
        held, packing.allowed, clock = await sync_to_async(leases.heartbeat)(self.worker, self._name, self._models)
        now, self._known, self._mended = time.monotonic(), True, False
        if now - self._beaten > GAP or self._clock.has_jumped(clock, asked, now):
            self._sure_since = now
        self._beaten = now
        self._reconcile(held)
        free_slots = self._free_slots()
        claimed = await sync_to_async(leases.claim)(
            self.worker,
            self._models,
            max_waiting=free_slots,
            max_started=MAX_CLAIMS if self._takes() else 0,
            heartbeat_fresh=now - self._sure_since > WORKER_TIMEOUT_S,
        )
        self.backlog = len(claimed) >= free_slots
        for pk in claimed:
            self._start_takeover(pk)
        if now - self._tidied > TIDY_EVERY:
            self._tidied = now
            await sync_to_async(leases.purge_workers)()
            for pk in await sync_to_async(leases.claim_unserved)(self.worker, MAX_CLAIMS):
                self._start_takeover(pk)

    def _reconcile(self, held: dict[int, HeldLease]) -> None:
        """Compare leases and runs. A difference counts at the second sight: a run may have started or ended meanwhile."""
        runs = {run.publisher.pk: run for run in self._runs() if run.publisher.pk is not None and not run.broadcast.ended}
        doubts: set[tuple[str, int]] = set()
        for pk, run in runs.items():
            if not run.broadcast.frames:
                continue  # Not open yet: its rows may be written again, if another append of the same commit was rejected.
            if pk not in held or held[pk].epoch != run.publisher.epoch:
                doubts.add(("lost", pk))
                if ("lost", pk) in self._doubts:
                    logger.info("%s: another process runs this response now", run.uid)
                    run.hand_over()
            elif held[pk].cancelled:
                run.cancel()
        for pk in held.keys() - runs.keys() - self._adopting.keys():
            doubts.add(("idle", pk))
            if ("idle", pk) in self._doubts:
                self._start_takeover(pk, retake=True)
        self._doubts = doubts

    def _start_takeover(self, pk: int, *, retake: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(
            self._takeover(pk, retake), name=f"take {pk}", context=contextvars.Context()
        )
        self._adopting[pk] = task
        task.add_done_callback(lambda _: self._adopting.pop(pk, None))

    async def _takeover(self, pk: int, retake: bool) -> None:
        try:
            async with asyncio.timeout(TAKEOVER_LIMIT_S):
                if retake and not await sync_to_async(leases.renew_epoch)(self.worker, pk):
                    return
                if self._stopped:
                    return
                await self._adopt(pk)
        except TimeoutError:
            logger.error("response %d was not taken over within %.0f s; it is tried again", pk, TAKEOVER_LIMIT_S)
        except Error as error:
            logger.warning("response %d not taken over yet: %s", pk, str(error).strip())
        except Exception:
            logger.exception("response %d could not be taken over; it is tried again", pk)
