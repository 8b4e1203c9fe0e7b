"""The task that erases background responses of `store:false` some minutes after their end (responses-api.md §3.4)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from responses_app.store.erase import erase, temporary

logger = logging.getLogger("responses.sweep")

KEEP = timedelta(minutes=10)
PAUSE = 30.0
BATCH = 100


async def sweep() -> None:
    """Look every PAUSE seconds, without end. Owned by the hub, which cancels it."""
    while True:
        await asyncio.sleep(PAUSE)
        try:
            while await swept(datetime.now(UTC)) == BATCH:
                pass
        except DatabaseError as error:
            logger.warning("not swept: %s", error)


async def swept(now: datetime) -> int:
    """Erase up to BATCH responses whose time is over by `now`; how many there were."""
    # One by one: the recorder shares the database thread, and its streams wait no longer than one deletion takes.
    found = await sync_to_async(temporary)(now - KEEP, BATCH)
    for project, uid in found:
        await sync_to_async(erase)(project, uid)
    return len(found)
