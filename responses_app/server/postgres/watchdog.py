"""Watchdog that restarts the embedded Postgres."""

from __future__ import annotations

import asyncio
import logging
import time

from responses_app.server.postgres.cluster import Postgres, PostgresError

logger = logging.getLogger("responses.serve")

WATCH = 0.5
# Maximum number of restarts within WITHIN seconds.
RESTARTS = 3
RESTART_SPAN = 60.0


async def watch(postgres: Postgres) -> None:
    """Watch Postgres until cancelled. Returns after too many restarts."""
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
