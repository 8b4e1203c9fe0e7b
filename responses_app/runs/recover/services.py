"""Services of a started run manager: log writer, lease keeper, followers of logs, and maintenance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from responses_app.runs.recover.lease_keeper import LeaseKeeper
from responses_app.runs.recover.log_follower import LogFollower
from responses_app.runs.recover.warm_up import WarmUp
from responses_app.store.cluster.start_locks import StartLocks
from responses_app.store.log.rows.repeat_lookups import RepeatLookups
from responses_app.store.log.writer import LogWriter


@dataclass(frozen=True, slots=True)
class Services:
    """Services that all runs of a process share. These start and end together."""

    recorder: LogWriter
    lease_keeper: LeaseKeeper
    log_follower: LogFollower
    maintenance: asyncio.Task[None]
    warm_up: WarmUp
    start_locks: StartLocks
    repeat_lookups: RepeatLookups

    def notify_work(self) -> None:
        """Notify this process and the others that there is a lease to claim."""
        self.lease_keeper.wake()
        self.log_follower.notify_work()

    async def release_runs(self) -> None:
        """Write the queued appends, and release the leases for other processes."""
        await self.recorder.close()
        await self.lease_keeper.release_leases()
        self.log_follower.notify_work()

    async def close(self, limit_s: float) -> None:
        """Stop the maintenance, wait up to `limit_s` seconds for the current step, and close the connections."""
        self.warm_up.stop()
        self.maintenance.cancel()
        await asyncio.wait({self.maintenance}, timeout=limit_s)
        await self.log_follower.close()
        await self.start_locks.close()
        self.repeat_lookups.close()
