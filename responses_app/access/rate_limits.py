"""Rate limits of API keys, counted in Postgres for all web processes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

from responses_app.access.reservations import Reservation, limit_reached
from responses_app.errors import RateLimited
from responses_app.models import ApiKey, ConcurrencySlot
from responses_app.runs import manager
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.run import Run
from responses_app.runs.prepare.planner import Reserve
from responses_app.store.cluster.leases import WORKER_TIMEOUT_S
from responses_app.store.limits import unstored
from responses_app.store.limits.unstored import OpenCharges, UnstoredEnd
from responses_app.store.limits.usage import Spent, spent, usage_row
from responses_app.store.repeats import HOLDS_LOCK_SQL

logger = logging.getLogger("responses.limits")

MINUTE_S = 60.0
# Seconds until a failed release is repeated. The next release repeats it too, but may never come: its key can be full.
RETRY_S = 5.0
# End of the bucket. One more than a minute away is from before the clock of the database was set back: it would refuse all requests.
FULL_UNTIL = """CASE WHEN rate_limit_until <= clock_timestamp() + make_interval(secs => %(minute)s)
  THEN greatest(rate_limit_until, clock_timestamp()) ELSE clock_timestamp() END"""
# Leaky bucket (GCRA) in one column, refilled within a minute. The row lock of the update makes the count below exact.
SPEND = f"""
WITH one AS (SELECT make_interval(secs => %(minute)s / requests_per_minute) AS took FROM responses_app_apikey WHERE id = %(key)s)
UPDATE responses_app_apikey SET rate_limit_until = {FULL_UNTIL} + one.took FROM one
WHERE id = %(key)s AND (one.took IS NULL
  OR {FULL_UNTIL} + one.took <= clock_timestamp() + make_interval(secs => %(minute)s))
RETURNING requests_per_minute, max_concurrent, extract(epoch FROM rate_limit_until - clock_timestamp())::float8
"""  # noqa: S608 - constants
STATE = """
SELECT requests_per_minute, extract(epoch FROM rate_limit_until - clock_timestamp())::float8 FROM responses_app_apikey WHERE id = %(key)s
"""
# A process without a heartbeat counts for this many seconds while it holds its lock: it may be busy, and its responses go on.
MAX_SILENT_S = 60.0
# Slots of dead processes, which are deleted when there is no other place.
TIDY = f"""
DELETE FROM responses_app_concurrencyslot slot WHERE key_id = %(key)s AND slot.worker != %(me)s AND (
  SELECT CASE WHEN heartbeat_at > clock_timestamp() - make_interval(secs => %(dead)s) THEN TRUE
    WHEN heartbeat_at > clock_timestamp() - make_interval(secs => %(silent)s) THEN {HOLDS_LOCK_SQL.format(column="slot.worker")}
  END
  FROM responses_app_worker worker WHERE worker.uid = slot.worker
) IS NOT TRUE
"""  # noqa: S608 - constants
COUNT = """
SELECT (SELECT count(*) FROM responses_app_concurrencyslot WHERE key_id = %(key)s)
  + (SELECT count(*) FROM responses_app_response WHERE key_id = %(key)s AND ended_at IS NULL)
"""


@dataclass(slots=True)
class AdmittedRequest:
    """Admitted request: the concurrency slot to release, and the reservation to settle, if any."""

    request_headers: Mapping[str, str] = field(default_factory=dict)
    slot: int | None = None
    reservation: Reservation | None = None
    _run: Run | None = None
    _request: CreateRequest | None = None
    # Release of the slot or the reservation that has begun.
    _writing: asyncio.Task[None] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Rate limit headers of requests and of tokens."""
        return self.request_headers if self.reservation is None else {**self.request_headers, **self.reservation.headers}

    @property
    def reserve(self) -> Reserve | None:
        """Function that reserves the tokens and calls of a prepared request; None if nothing is limited."""
        return None if self.reservation is None else self.reservation.reserve

    def follow(self, run: Run, request: CreateRequest) -> None:
        """Release at the end of `run`.

        The row of a stored response has replaced its slot, and its last append settles the reservation.
        """
        if run.publisher.is_stored:
            self._take_reservation()
            self.slot = None
        else:
            self._run, self._request = run, request
            run.on_done(self.release_soon)

    def release_soon(self) -> None:
        """Release and settle in a background task. Repeated calls do nothing."""
        is_limited = self._is_limited
        if self._take():
            task = _start_writing()
            self._writing = task if is_limited else None

    async def release(self) -> None:
        """Release and settle now, before a client can see the end of the response. A response without limits does not wait."""
        if not self._is_limited:
            self.release_soon()
            if self._writing is not None:
                # The run was over before the client had read all of it.
                await asyncio.shield(self._writing)
        elif self._take():
            await asyncio.shield(_write_released())

    async def note_usage(self, request: CreateRequest, model: str, usage: Mapping[str, Any]) -> None:
        """Note the usage of a request that makes no response, and release. `model` is the served model."""
        self._note_end(request, spent(model, usage, ()))
        self._take()
        await asyncio.shield(_write_released())

    @property
    def _is_limited(self) -> bool:
        return self.slot is not None or (self.reservation is not None and bool(self.reservation.open.charges))

    def _take(self) -> bool:
        """Move the slot and the reservation to the next write. Return whether there is anything to write."""
        is_taken = self.slot is not None
        if self.slot is not None:
            _released.add(self.slot)
            self.slot = None
        run, request = self._run, self._request
        if run is None or request is None:
            if (reserved := self._take_reservation()).charges:
                unstored.pending.add(UnstoredEnd(reserved, Spent(), None))
                is_taken = True
        elif run.writer.ended or run.broadcast.ended:
            self._run = self._request = None
            response = run.writer.response
            self._note_end(request, spent(response["model"], response["usage"], response["output"]))
            is_taken = True
        return is_taken

    def _take_reservation(self) -> OpenCharges:
        return OpenCharges() if self.reservation is None else self.reservation.take()

    def _note_end(self, request: CreateRequest, total: Spent) -> None:
        row = usage_row(request.project, request.key, request.user, request.model, total)
        unstored.pending.add(UnstoredEnd(self._take_reservation(), total, row))


# Released slots that are not deleted yet.
_released: set[int] = set()
_tasks: set[asyncio.Task[None]] = set()
_retry: asyncio.TimerHandle | None = None


@asynccontextmanager
async def admit(key: ApiKey) -> AsyncIterator[AdmittedRequest]:
    """Admit a request of this key. An exception inside releases the slot. Raises RateLimited."""
    ticket = await _acquire(key)
    if key.all_counted_limits:
        ticket.reservation = Reservation(key)
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
    acquiring = asyncio.ensure_future(sync_to_async(_acquire_slot)(key.pk, worker))
    try:
        return await asyncio.shield(acquiring)
    except asyncio.CancelledError:
        # The thread goes on, and its slot would count for as long as this process lives.
        acquiring.add_done_callback(_release_acquired)
        raise


def _release_acquired(acquiring: asyncio.Future[AdmittedRequest]) -> None:
    """Release the slot of a request whose client has left."""
    if not acquiring.cancelled() and acquiring.exception() is None:
        acquiring.result().release_soon()


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
        running = _count_running(cursor, key)
        if running >= max_concurrent:
            cursor.execute(TIDY, {"key": key, "me": worker, "dead": WORKER_TIMEOUT_S, "silent": MAX_SILENT_S})
            running = _count_running(cursor, key)
        # The exception rolls the transaction back, so the request is not counted.
        if running >= max_concurrent:
            message = f"Rate limit reached for responses at a time of this key: Limit {max_concurrent}, Running {running}. "
            refused = RateLimited(f"{message}Try again when one of them has ended.")
            raise limit_reached(refused, "concurrent responses", "key")
        return AdmittedRequest(headers, ConcurrencySlot.objects.create(key_id=key, worker=worker).pk)


def _count_running(cursor: CursorWrapper, key: int) -> int:
    cursor.execute(COUNT, {"key": key})
    (running,) = cursor.fetchone()
    return int(running)


def _limited(each_minute: int, full_s: float | None) -> RateLimited:
    wait = max((full_s or 0.0) + MINUTE_S / each_minute - MINUTE_S, 0.0)
    refused = RateLimited(
        f"Rate limit reached for requests per minute of this key: Limit {each_minute}. Try again in {wait:.2f}s.",
        retry_after=max(math.ceil(wait), 1),
    )
    refused.headers |= _rate_limit_headers(each_minute, full_s or 0.0)
    return limit_reached(refused, "requests per minute", "key")


def _rate_limit_headers(each_minute: int, full_s: float) -> dict[str, str]:
    """Return OpenAI's rate limit headers: limit, remaining requests, seconds until the full limit."""
    left = math.floor((MINUTE_S - full_s) * each_minute / MINUTE_S + 1e-6)
    return {
        "x-ratelimit-limit-requests": str(each_minute),
        "x-ratelimit-remaining-requests": str(max(left, 0)),
        "x-ratelimit-reset-requests": f"{max(full_s, 0.0):.2f}s",
    }


def _start_writing() -> asyncio.Task[None]:
    # An empty context, so that the task does not inherit the database thread of a request that ends.
    task = asyncio.get_running_loop().create_task(_write_released(), name="slots", context=contextvars.Context())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


async def _write_released() -> None:
    try:
        # A single call: the thread of a request whose client leaves meanwhile takes no second one.
        await sync_to_async(_write)()
    except DatabaseError as error:
        logger.warning("%d slots and the usage of requests are written later: %s", len(_released), str(error).strip())
        _retry_later()


def _write() -> None:
    if free := list(_released):
        ConcurrencySlot.objects.filter(pk__in=free).delete()
        _released.difference_update(free)
    unstored.pending.write()


def _retry_later() -> None:
    """Repeat the write after RETRY_S seconds, once for all writes that fail meanwhile."""
    global _retry
    loop = asyncio.get_running_loop()
    if _retry is None or _retry.when() <= loop.time():
        _retry = loop.call_later(RETRY_S, _start_writing, context=contextvars.Context())
