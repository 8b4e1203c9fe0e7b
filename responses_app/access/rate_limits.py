"""What a key may ask: which models, how often, how much at a time. Counted in Postgres, so that all web processes agree."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction

from responses_app.errors import RateLimited
from responses_app.models import ApiKey, ConcurrencySlot
from responses_app.runs import manager
from responses_app.runs.execute.run import Run
from responses_app.store.cluster.leases import DEAD_S

logger = logging.getLogger("responses.limits")

MINUTE_S = 60.0
# A bucket that is full again after a minute (GCRA): one column, one statement, and its lock is what makes the count below exact.
SPEND = """
WITH one AS (SELECT make_interval(secs => %(minute)s / requests_per_minute) AS took FROM responses_app_apikey WHERE id = %(key)s)
UPDATE responses_app_apikey SET rate_limit_until = greatest(rate_limit_until, clock_timestamp()) + one.took FROM one
WHERE id = %(key)s AND (one.took IS NULL
  OR greatest(rate_limit_until, clock_timestamp()) + one.took <= clock_timestamp() + make_interval(secs => %(minute)s))
RETURNING requests_per_minute, max_concurrent, extract(epoch FROM rate_limit_until - clock_timestamp())::float8
"""
STATE = """
SELECT requests_per_minute, extract(epoch FROM rate_limit_until - clock_timestamp())::float8 FROM responses_app_apikey WHERE id = %(key)s
"""
# Those of processes that died with what they ran.
TIDY = """
DELETE FROM responses_app_concurrencyslot WHERE key_id = %(key)s AND worker != %(me)s AND NOT EXISTS (
  SELECT FROM responses_app_worker worker WHERE worker.uid = responses_app_concurrencyslot.worker
  AND worker.heartbeat_at > clock_timestamp() - make_interval(secs => %(dead)s))
"""
COUNT = """
SELECT (SELECT count(*) FROM responses_app_concurrencyslot WHERE key_id = %(key)s)
  + (SELECT count(*) FROM responses_app_response WHERE key_id = %(key)s AND ended_at IS NULL)
"""


@dataclass(slots=True)
class Admission:
    """A request that was let in: the headers that tell what is left, and a slot to be given back, if it has one."""

    headers: Mapping[str, str] = field(default_factory=dict)
    slot: int | None = None

    def release_on_end(self, run: Run) -> None:
        """The slot goes when the run is over."""
        if self.slot is not None:
            run.on_done(self.release_soon)

    def release_soon(self) -> None:
        """Give the slot back soon. A second time does nothing."""
        if self.slot is not None:
            _over.add(self.slot)
            self.slot = None
            # An empty context, as for a run: it must not inherit the database thread of a request that ends.
            task = asyncio.get_running_loop().create_task(_give(), name="slots", context=contextvars.Context())
            _giving.add(task)
            task.add_done_callback(_giving.discard)

    async def release(self) -> None:
        """Give the slot back before anybody can see that the response has ended."""
        if self.slot is not None:
            _over.add(self.slot)
            self.slot = None
            await asyncio.shield(_give())


# Slots that are free, until the database knows it: what cannot be told now is told with the next one.
_over: set[int] = set()
_giving: set[asyncio.Task[None]] = set()


@asynccontextmanager
async def admit(key: ApiKey) -> AsyncIterator[Admission]:
    """Count a request of this key before anything runs. Its slot is given back if what is inside raises. Raises Busy."""
    ticket = await _acquire(key)
    try:
        yield ticket
    except asyncio.CancelledError:
        ticket.release_soon()
        raise
    except BaseException:
        await ticket.release()
        raise


async def _acquire(key: ApiKey) -> Admission:
    if key.pk is None or (key.requests_per_minute is None and key.max_concurrent is None):
        return Admission()
    worker = await manager.current().worker()
    return await sync_to_async(_acquire_slot)(key.pk, worker)


def _acquire_slot(key: int, worker: UUID) -> Admission:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(SPEND, {"key": key, "minute": MINUTE_S})
        spent = cursor.fetchone()
        if spent is None:
            cursor.execute(STATE, {"key": key})
            raise _limited(*(cursor.fetchone() or (1, 0.0)))
        each_minute, max_concurrent, full_s = spent
        headers = {} if each_minute is None else _rate_limit_headers(each_minute, full_s)
        if max_concurrent is None:
            return Admission(headers)
        cursor.execute(TIDY, {"key": key, "me": worker, "dead": DEAD_S})
        cursor.execute(COUNT, {"key": key})
        (running,) = cursor.fetchone()
        # What was counted above is taken back with the transaction: nothing was asked.
        if running >= max_concurrent:
            raise RateLimited(
                f"Rate limit reached for responses at a time of this key: Limit {max_concurrent}, Running {running}. "
                "Try again when one of them has ended."
            )
        return Admission(headers, ConcurrencySlot.objects.create(key_id=key, worker=worker).pk)


def _limited(each_minute: int, full_s: float | None) -> RateLimited:
    wait = max((full_s or 0.0) + MINUTE_S / each_minute - MINUTE_S, 0.0)
    refused = RateLimited(
        f"Rate limit reached for requests per minute of this key: Limit {each_minute}. Try again in {wait:.2f}s.",
        retry_after=max(math.ceil(wait), 1),
    )
    refused.headers |= _rate_limit_headers(each_minute, full_s or 0.0)
    return refused


def _rate_limit_headers(each_minute: int, full_s: float) -> dict[str, str]:
    """The headers as OpenAI has them: the limit, how many requests are left at once, and when all of them are."""
    left = math.floor((MINUTE_S - full_s) * each_minute / MINUTE_S + 1e-6)
    return {
        "x-ratelimit-limit-requests": str(each_minute),
        "x-ratelimit-remaining-requests": str(max(left, 0)),
        "x-ratelimit-reset-requests": f"{max(full_s, 0.0):.2f}s",
    }


async def _give() -> None:
    free = list(_over)
    try:
        await ConcurrencySlot.objects.filter(pk__in=free).adelete()
    except DatabaseError as error:
        logger.warning("%d slots are told to be free later: %s", len(free), str(error).strip())
        return
    _over.difference_update(free)
