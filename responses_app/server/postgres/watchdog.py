"""Starts the embedded Postgres again when it dies; the log is durable, so all that is lost is what had not been told."""

from __future__ import annotations

import asyncio
import logging
import time

from responses_app.server.postgres.cluster import Postgres, PostgresError

logger = logging.getLogger("responses.serve")

WATCH = 0.5
# It may be restarted this often within this many seconds; after that something is wrong that a restart does not mend.
RESTARTS = 3
RESTART_SPAN = 60.0


async def watch(postgres: Postgres) -> None:
    """Watch it until this is cancelled. Returns when there is no help any more."""
    restarts: list[float] = []
    while True:
        await asyncio.sleep(WATCH)
        if postgres.running:
            continue
        restarts = [*(at for at in restarts if time.monotonic() - at < RESTART_SPAN), time.monotonic()]
        if len(restarts) > RESTARTS or not await _restarted(postgres):
            return


async def _restarted(postgres: Postgres) -> bool:
    logger.error("Postgres has died; starting it again")
    try:
        await asyncio.to_thread(postgres.start)
    except PostgresError as error:
        logger.error("%s", error)
        return False
    return True
