"""Rate limits of API keys, counted in Postgres for all web processes."""

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
from responses_app.store.cluster.leases import WORKER_TIMEOUT_S

logger = logging.getLogger("responses.limits")

MINUTE_S = 60.0
# Leaky bucket (GCRA) in one column, refilled within a minute. The row lock of the update makes the count below exact.
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
# Slots of dead processes.
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
class AdmittedRequest:
    """Admitted request: rate limit headers, and the concurrency slot to release, if any."""

    headers: Mapping[str, str] = field(default_factory=dict)
    slot: int | None = None

    def release_on_end(self, run: Run) -> None:
        """Release the slot at the end of `run`."""
        if self.slot is not None:
            run.on_done(self.release_soon)

    def release_soon(self) -> None:
        """Release the slot in a background task. Repeated calls do nothing."""
        if self.slot is not None:
            _released.add(self.slot)
            self.slot = None
            # An empty context, so that the task does not inherit the database thread of a request that ends.
            task = asyncio.get_running_loop().create_task(_delete_released(), name="slots", context=contextvars.Context())
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    async def release(self) -> None:
        """Release the slot now, before a client can see the end of the response."""
        if self.slot is not None:
            _released.add(self.slot)
            self.slot = None
            await asyncio.shield(_delete_released())


# Released slots that are not deleted yet; a failed deletion is repeated with the next one.
_released: set[int] = set()
_tasks: set[asyncio.Task[None]] = set()


@asynccontextmanager
async def admit(key: ApiKey) -> AsyncIterator[AdmittedRequest]:
    """Admit a request of this key. An exception inside releases the slot. Raises RateLimited."""
    ticket = await _acquire(key)
    try:
        yield ticket
    except asyncio.CancelledError:
        ticket.release_soon()
        raise
    except BaseException:
        await ticket.release()
        raise


async def _acquire(key: ApiKey) -> AdmittedRequest:
    if key.pk is None or (key.requests_per_minute is None and key.max_concurrent is None):
        return AdmittedRequest()
    worker = await manager.current().worker()
    return await sync_to_async(_acquire_slot)(key.pk, worker)


def _acquire_slot(key: int, worker: UUID) -> AdmittedRequest:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(SPEND, {"key": key, "minute": MINUTE_S})
        spent = cursor.fetchone()
        if spent is None:
            cursor.execute(STATE, {"key": key})
            raise _limited(*(cursor.fetchone() or (1, 0.0)))
        each_minute, max_concurrent, full_s = spent
        headers = {} if each_minute is None else _rate_limit_headers(each_minute, full_s)
        if max_concurrent is None:
            return AdmittedRequest(headers)
        cursor.execute(TIDY, {"key": key, "me": worker, "dead": WORKER_TIMEOUT_S})
        cursor.execute(COUNT, {"key": key})
        (running,) = cursor.fetchone()
        # The exception rolls the transaction back, so the request is not counted.
        if running >= max_concurrent:
            raise RateLimited(
                f"Rate limit reached for responses at a time of this key: Limit {max_concurrent}, Running {running}. "
                "Try again when one of them has ended."
            )
        return AdmittedRequest(headers, ConcurrencySlot.objects.create(key_id=key, worker=worker).pk)


def _limited(each_minute: int, full_s: float | None) -> RateLimited:
    wait = max((full_s or 0.0) + MINUTE_S / each_minute - MINUTE_S, 0.0)
    refused = RateLimited(
        f"Rate limit reached for requests per minute of this key: Limit {each_minute}. Try again in {wait:.2f}s.",
        retry_after=max(math.ceil(wait), 1),
    )
    refused.headers |= _rate_limit_headers(each_minute, full_s or 0.0)
    return refused


def _rate_limit_headers(each_minute: int, full_s: float) -> dict[str, str]:
    """Return OpenAI's rate limit headers: limit, remaining requests, seconds until the full limit."""
    left = math.floor((MINUTE_S - full_s) * each_minute / MINUTE_S + 1e-6)
    return {
        "x-ratelimit-limit-requests": str(each_minute),
        "x-ratelimit-remaining-requests": str(max(left, 0)),
        "x-ratelimit-reset-requests": f"{max(full_s, 0.0):.2f}s",
    }


async def _delete_released() -> None:
    free = list(_released)
    try:
        await ConcurrencySlot.objects.filter(pk__in=free).adelete()
    except DatabaseError as error:
        logger.warning("%d slots are released later: %s", len(free), str(error).strip())
        return
    _released.difference_update(free)
