"""The task that keeps the tables small: it seals logs that have ended, and lets go what has been kept long enough."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from django.conf import settings
from django.db import DatabaseError, connection

from responses_app.store.content import orphans
from responses_app.store.log.archive import LogChanged, seal, to_archive
from responses_app.store.log.retention import TEMPORARY, prune

logger = logging.getLogger("responses.upkeep")

SEALING = 2.0
PRUNING = 30.0
BATCH = 50
# After each step a pause as long as the step took, so that the streams of this process have at least half of the interpreter.
SHORTEST = 0.005

Work: TypeAlias = Callable[[datetime], Iterator[int]]


async def upkeep() -> None:
    """Look again and again, without end. Owned by the hub, which cancels it; then the step that is under way is waited for."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_every(SEALING, archive_due))
        group.create_task(_every(PRUNING, prune_due))


def archive_due(now: datetime) -> Iterator[int]:
    """Seal what has ended for long enough, log by log; how many events each has."""
    after = settings.RESPONSES_SEAL_AFTER
    while after is not None and (found := to_archive(now - after, BATCH)):
        counts = [0]
        for pk in found:
            try:
                counts.append(seal(pk))
            except LogChanged as error:
                # Left as it is, and no reason to leave the others.
                logger.error("not sealed: %s", error)
            yield counts[-1]
        # What is left is in the hands of other processes.
        if not any(counts):
            return


def prune_due(now: datetime) -> Iterator[int]:
    """Let go what the settings say, batch by batch; how many responses or items each has."""
    ages = {"temporary": TEMPORARY, "deltas": settings.RESPONSES_KEEP_DELTAS, "responses": settings.RESPONSES_KEEP_RESPONSES}
    for name, age in ages.items():
        if age is not None:
            yield from prune(name, now - age)
    kept = timedelta(0) if settings.RESPONSES_DELETE_CONVERSATION_ITEMS else settings.RESPONSES_KEEP_RESPONSES
    if kept is not None:
        yield from orphans.prune(now - kept)


async def _every(pause: float, work: Work) -> None:
    while True:
        await asyncio.sleep(pause)
        await _in_thread(work)


async def _in_thread(work: Work) -> None:
    """In a thread with a connection of its own: the recorder has the other one, and streams wait for it."""
    stop = threading.Event()
    doing = asyncio.ensure_future(asyncio.to_thread(_run_steps, work, stop))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.set()
        await doing
        raise


def _run_steps(work: Work, stop: threading.Event) -> None:
    began = time.monotonic()
    try:
        for _ in work(datetime.now(UTC)):
            if stop.wait(max(time.monotonic() - began, SHORTEST)):
                return
            began = time.monotonic()
    except DatabaseError as error:
        logger.warning("%s: %s", work.__name__, error)
    except Exception:
        # Whatever it was, there is more to be done the next time.
        logger.exception("%s", work.__name__)
    finally:
        connection.close()
