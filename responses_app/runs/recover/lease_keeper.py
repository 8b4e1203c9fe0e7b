"""Keeps this process alive in the eyes of the others, and takes over what nobody runs.

Every BEAT seconds it says that it lives, learns what it holds, and claims what is free: responses whose process has died, those
that were given back, and those that wait for room. A signal makes it look at once. What it holds and does not run, it runs;
what it runs and does not hold any more, it lets go.
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
from responses_app.store.cluster.leases import DEAD_S, HeldLease
from responses_app.store.db import check_connection

logger = logging.getLogger("responses.watch")

BEAT = 1.0
# How much is taken over at a time; the next beat takes more.
MOST = 128
STOP_LIMIT = 5.0
# Whoever missed so many seconds may have been taken for dead, and must not take others for it.
GAP = 3 * BEAT
TIDY_EVERY = 60.0


class LeaseKeeper:
    """One per hub. `runs` are those of this process, `room` how many that wait may begin, `takes` whether any others are to be
    taken over, `adopt` makes a run of a lease that is held.
    """

    def __init__(
        self,
        models: Iterable[str],
        runs: Callable[[], Iterable[Run]],
        room: Callable[[], int],
        takes: Callable[[], bool],
        adopt: Callable[[int], Awaitable[None]],
    ) -> None:
        self.worker: UUID = uuid4()
        # Whether something waited when we last looked: newcomers queue behind it.
        self.backlog = False
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._models = list(models)
        self._runs, self._room, self._takes, self._adopt = runs, room, takes, adopt
        self._wake = asyncio.Event()
        # A new process has missed nothing: when it reads that others are silent, they are.
        self._sure_since, self._beaten = -inf, inf
        self._known = self._stopped = self._mended = False
        self._tidied = time.monotonic()
        self._doubts: set[tuple[str, int]] = set()
        self._adopting: dict[int, asyncio.Task[None]] = {}
        self._task = asyncio.get_running_loop().create_task(self._go(), name="watch", context=contextvars.Context())

    def wake(self) -> None:
        """Look at once."""
        self._wake.set()

    async def stop(self) -> None:
        """Look no more; what is held stays so, for as long as others take this process for alive."""
        # A cancellation that meets a call of the database is lost in it, so it is not the only sign.
        self._stopped = True
        tasks = [self._task, *self._adopting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=STOP_LIMIT)

    async def release_leases(self) -> None:
        """Hold nothing any more, so that others go on at once."""
        if not self._known:
            return
        try:
            given = await asyncio.wait_for(sync_to_async(leases.give_back)(self.worker), STOP_LIMIT)
        except (Error, TimeoutError) as error:
            logger.warning("nothing was given back, others will find it in %.0f s: %s", DEAD_S, error)
        else:
            if given:
                logger.info("%d responses were given back, for others to go on with", given)

    async def _go(self) -> None:
        while not self._stopped:
            try:
                await self._tick()
            except Error as error:
                logger.warning("no heartbeat: %s", str(error).strip())
                # The next beat needs one that works, and comes at once: whoever is silent for long is taken for dead.
                await sync_to_async(check_connection)()
                if not self._mended:
                    self._mended = True
                    self._wake.set()
            except Exception:
                logger.exception("the watch has stumbled")
            if self._stopped:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BEAT)
            self._wake.clear()

    async def _tick(self) -> None:
        held = await sync_to_async(leases.heartbeat)(self.worker, self._name, self._models)
        now, self._known, self._mended = time.monotonic(), True, False
        if now - self._beaten > GAP:
            self._sure_since = now
        self._beaten = now
        self._reconcile(held)
        room = self._room()
        claimed = await sync_to_async(leases.claim)(
            self.worker, self._models, room=room, most=MOST if self._takes() else 0, sure=now - self._sure_since > DEAD_S
        )
        self.backlog = len(claimed) >= room
        for pk in claimed:
            self._start_takeover(pk)
        if now - self._tidied > TIDY_EVERY:
            self._tidied = now
            await sync_to_async(leases.purge_workers)()
            for pk in await sync_to_async(leases.unserved)(self.worker, MOST):
                self._start_takeover(pk)

    def _reconcile(self, held: dict[int, HeldLease]) -> None:
        """What looks wrong twice in a row is: a run may just have begun, or ended, when the leases were read."""
        runs = {run.pk: run for run in self._runs() if run.pk is not None and not run.ended}
        doubts: set[tuple[str, int]] = set()
        for pk, run in runs.items():
            if not run.frames:
                continue  # Not begun: its rows may have to be written once more, if they met others that are refused.
            if pk not in held or held[pk].epoch != run.epoch:
                doubts.add(("lost", pk))
                if ("lost", pk) in self._doubts:
                    logger.info("%s: is run by another process now", run.uid)
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
            if retake and not await sync_to_async(leases.renew_epoch)(self.worker, pk):
                return
            if self._stopped:
                return
            await self._adopt(pk)
        except Error as error:
            logger.warning("response %d not taken over yet: %s", pk, str(error).strip())
        except Exception:
            logger.exception("response %d could not be taken over; it is tried again", pk)
