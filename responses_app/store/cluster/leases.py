"""SQL of leases: heartbeats of workers, and ownership of running responses.

All times come from the database, because the clocks of several machines differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import DurationField, Exists, ExpressionWrapper, F, Func, IntegerField, OuterRef, QuerySet, Value
from django.db.models.functions import Coalesce, Now

from responses_app.installation.keyring import secret_key_ids
from responses_app.installation.shared_settings import shared_settings
from responses_app.models import Lease, Response, Worker
from responses_app.store.cluster.clock import shared_clock

# A worker without a heartbeat for this many seconds is considered dead.
WORKER_TIMEOUT_S = 5.0
# A heartbeat that lies further ahead is from before the clock of the database was set back: a live worker has renewed its own since.
MAX_AHEAD_S = 60.0
# A process of an earlier version that was silent for this many seconds reads no rows any more.
OLD_VERSION_TIMEOUT_S = 60.0
# Rows of dead workers stay for this many seconds, to help to explain a failure.
WORKER_ROW_RETENTION_S = 86400.0

HEARTBEAT_SQL = """
INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at, secret_key_id, shared_settings, reads_packed, reads_groups,
    reads_shared)
VALUES (%s, %s, %s, clock_timestamp(), %s, %s::jsonb, TRUE, TRUE, TRUE)
ON CONFLICT (uid) DO UPDATE SET heartbeat_at = clock_timestamp()
RETURNING extract(epoch FROM heartbeat_at)::float8, (
    SELECT COALESCE(bool_and(reads_groups), TRUE) FROM responses_app_worker
    WHERE heartbeat_at > clock_timestamp() - make_interval(secs => %s)
)
"""
# A lease is free without a worker or with a dead worker. A heartbeat of the future is one from before the clock was set back. A
# waiting response needs capacity, a cancelled response does not, nor a process of its model if there is none.
CLAIM_SQL = """
UPDATE responses_app_lease SET worker = %(worker)s, epoch = epoch + 1 WHERE response_id IN (
    SELECT lease.response_id FROM responses_app_lease lease
    WHERE {state} AND (lease.model = ANY(%(models)s) OR lease.cancelled AND NOT EXISTS (
        SELECT FROM responses_app_worker worker WHERE lease.model = ANY(worker.served_models)
        AND worker.heartbeat_at > clock_timestamp() - make_interval(secs => %(dead)s)
    )) AND lease.worker IS DISTINCT FROM %(worker)s AND NOT EXISTS (
        SELECT FROM responses_app_worker worker WHERE worker.uid = lease.worker
        AND worker.heartbeat_at BETWEEN clock_timestamp() - make_interval(secs => %(dead)s)
            AND clock_timestamp() + make_interval(secs => %(dead)s)
    )
    ORDER BY lease.priority, lease.response_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
RETURNING response_id
"""
STARTED = "(lease.cancelled OR NOT lease.waiting)"
WAITING = "(lease.waiting AND NOT lease.cancelled)"

# A response without a live worker for its model is ended after this many seconds: longer than a restart.
MAX_UNSERVED_S = 600.0
CLAIM_UNSERVED_SQL = """
UPDATE responses_app_lease SET worker = %(worker)s, epoch = epoch + 1 WHERE response_id IN (
    SELECT lease.response_id FROM responses_app_lease lease JOIN responses_app_response response ON response.id = lease.response_id
    WHERE response.created_at < clock_timestamp() - make_interval(secs => %(old)s) AND NOT EXISTS (
        SELECT FROM responses_app_worker worker
        WHERE (worker.uid = lease.worker OR lease.model = ANY(worker.served_models))
        AND worker.heartbeat_at > clock_timestamp() - make_interval(secs => %(old)s)
    )
    ORDER BY lease.response_id LIMIT %(limit)s FOR UPDATE OF lease SKIP LOCKED
)
RETURNING response_id
"""

PURGE_SQL = """
DELETE FROM responses_app_worker WHERE heartbeat_at NOT BETWEEN clock_timestamp() - make_interval(secs => %s)
  AND clock_timestamp() + make_interval(secs => %s)
"""

# Time since the work on a response began, by the clock of the database.
RUNNING = ExpressionWrapper(Now() - Coalesce(F("lease__started_at"), F("created_at")), output_field=DurationField())


@dataclass(frozen=True, slots=True)
class HeldLease:
    """Lease held by this worker."""

    epoch: int
    cancelled: bool


def heartbeat(worker: UUID, name: str, models: Sequence[str]) -> tuple[dict[int, HeldLease], bool, float]:
    """Update the heartbeat of a worker.

    Return the leases of the worker, by primary key of the response, whether all processes that run can read rows of several
    events, and the time of the database.
    """
    parameters: list[Any] = [
        worker,
        name,
        list(models),
        secret_key_ids()[0],
        json.dumps(shared_settings()),
        OLD_VERSION_TIMEOUT_S,
    ]
    with connection.cursor() as cursor:
        before = datetime.now(UTC)
        cursor.execute(HEARTBEAT_SQL, parameters)
        clock, all_read_groups = cursor.fetchone()
    shared_clock.note(datetime.fromtimestamp(clock, UTC), before, datetime.now(UTC))
    rows = Lease.objects.filter(worker=worker).values_list("response_id", "epoch", "cancelled")
    return {pk: HeldLease(epoch, cancelled) for pk, epoch, cancelled in rows}, all_read_groups, clock


def claim(worker: UUID, models: Sequence[str], *, max_waiting: int, max_started: int, heartbeat_fresh: bool) -> list[int]:
    """Claim free leases: up to `max_started` of started and `max_waiting` of waiting responses. Return the responses' primary keys.

    Without `heartbeat_fresh`, claim only leases without a worker. A process that missed its own heartbeats may have lost the
    connection to the database, so it cannot judge which other workers are dead.
    """
    claimed = _claim(worker, models, STARTED, max_started, heartbeat_fresh=heartbeat_fresh) if max_started > 0 else []
    if max_waiting > 0:
        claimed += _claim(worker, models, WAITING, max_waiting, heartbeat_fresh=heartbeat_fresh)
    return claimed


def _claim(worker: UUID, models: Sequence[str], state: str, limit: int, *, heartbeat_fresh: bool) -> list[int]:
    if not heartbeat_fresh:
        state = f"{state} AND lease.worker IS NULL"
    with connection.cursor() as cursor:
        statement = CLAIM_SQL.format(state=state)
        cursor.execute(statement, {"worker": worker, "models": list(models), "limit": limit, "dead": WORKER_TIMEOUT_S})
        return [pk for (pk,) in cursor.fetchall()]


def claim_unserved(worker: UUID, limit: int) -> list[int]:
    """Claim responses without a live worker for MAX_UNSERVED_S seconds, for ending as failed. Return primary keys."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_UNSERVED_SQL, {"worker": worker, "limit": limit, "old": MAX_UNSERVED_S})
        return [pk for (pk,) in cursor.fetchall()]


def renew_epoch(worker: UUID, pk: int) -> bool:
    """Raise the epoch of a lease of the same worker, so that writes under the previous epoch are refused."""
    return Lease.objects.filter(pk=pk, worker=worker).update(epoch=F("epoch") + 1) > 0


def record_takeover(pk: int, last_number: int) -> int | None:
    """Count consecutive takeovers without a new event, given `last_number` of the log. None if the response has ended."""
    with transaction.atomic():
        lease = Lease.objects.select_for_update().filter(pk=pk).first()
        if lease is None:
            return None
        lease.stalled_takeovers = lease.stalled_takeovers + 1 if lease.last_number == last_number else 0
        lease.last_number = last_number
        lease.save(update_fields=["stalled_takeovers", "last_number"])
        if not lease.stalled_takeovers:
            # Appends also to null.
            added = Func(F("takeovers"), Value(last_number, IntegerField()), function="array_append")
            Response.objects.filter(pk=pk).update(takeovers=added)
    return lease.stalled_takeovers


def live_workers() -> QuerySet[Worker]:
    """Return the workers with a recent heartbeat, without those whose heartbeat lies more than MAX_AHEAD_S in the future."""
    now = Now()
    recent = (now - timedelta(seconds=WORKER_TIMEOUT_S), now + timedelta(seconds=MAX_AHEAD_S))
    return Worker.objects.filter(heartbeat_at__range=recent)


def workers_ahead() -> QuerySet[Worker]:
    """Return the workers whose heartbeat lies more than MAX_AHEAD_S in the future."""
    return Worker.objects.filter(heartbeat_at__gt=Now() + timedelta(seconds=MAX_AHEAD_S))


def is_abandoned(pk: int) -> bool:
    """Return whether a response that has started has no live process, so that another one has to take it over."""
    alive = Worker.objects.filter(pk=OuterRef("worker"), heartbeat_at__gt=Now() - timedelta(seconds=WORKER_TIMEOUT_S))
    return Lease.objects.filter(~Exists(alive), pk=pk, waiting=False).exists()


def cancel(pk: int) -> bool:
    """Request the owner of a response to end the response. False if the response has ended."""
    return Lease.objects.filter(pk=pk).update(cancelled=True) > 0


def release_all(worker: UUID) -> int:
    """Release all leases of a worker and delete the row, so that others can claim at once. Return the number of leases."""
    with transaction.atomic():
        released = Lease.objects.filter(worker=worker).update(worker=None)
        Worker.objects.filter(pk=worker).delete()
    return released


def count_waiting() -> int:
    """Count responses waiting for capacity, in all processes."""
    return Lease.objects.filter(waiting=True, worker=None).count()


def purge_workers() -> None:
    """Delete the rows of workers dead for WORKER_ROW_RETENTION_S seconds, and heartbeats of the future, which would seem alive."""
    with connection.cursor() as cursor:
        cursor.execute(PURGE_SQL, [WORKER_ROW_RETENTION_S, WORKER_TIMEOUT_S])


@dataclass(frozen=True, slots=True)
class LeasedResponse:
    """Response for a takeover: the request as JSON, the prompt tokens as bytes, and the seconds since the work on it began."""

    row: Response
    lease: Lease
    create_request: str
    prompt_tokens: bytes
    running_s: float


def load(pk: int) -> LeasedResponse | None:
    """Load a response for a takeover. None if ended or deleted."""
    responses = Response.objects.select_related("lease", "stored_request").filter(pk=pk, ended_at=None)
    row = responses.annotate(running=RUNNING).first()
    related: Any = row
    if row is None or not hasattr(row, "lease") or not hasattr(row, "stored_request"):
        return None
    lease, request = related.lease, related.stored_request
    running_s = 0.0 if lease.waiting else max(related.running.total_seconds(), 0.0)
    return LeasedResponse(row, lease, request.create_request, bytes(request.prompt_tokens), running_s)
