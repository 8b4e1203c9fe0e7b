"""The SQL of leases: who lives, who runs what, and what nobody runs any more.

All times are the database's own: the clocks of several machines differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F

from responses_app.models import Lease, Response, Worker

# A worker that is silent for so long is dead (failure case I12).
DEAD_S = 5.0
# The rows of dead workers are of use to whoever asks what happened, for a while.
FORGET_S = 86400.0

BEAT = """
INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at)
VALUES (%s, %s, %s, clock_timestamp())
ON CONFLICT (uid) DO UPDATE SET heartbeat_at = clock_timestamp()
"""
# What is free: nobody's, or a dead worker's. Of what waits only as much as there is room for, but a cancelled one needs none.
CLAIM = """
UPDATE responses_app_lease SET worker = %(me)s, epoch = epoch + 1 WHERE response_id IN (
    SELECT lease.response_id FROM responses_app_lease lease
    WHERE {which} AND lease.model = ANY(%(models)s) AND lease.worker IS DISTINCT FROM %(me)s AND NOT EXISTS (
        SELECT FROM responses_app_worker worker WHERE worker.uid = lease.worker
        AND (worker.heartbeat_at > clock_timestamp() - make_interval(secs => %(dead)s))
    )
    ORDER BY lease.priority, lease.response_id LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
RETURNING response_id
"""
RUNNING = "(lease.cancelled OR NOT lease.waiting)"
WAITING = "(lease.waiting AND NOT lease.cancelled)"


# What nobody alive could run, for so long that it is not just a restart.
UNSERVED_S = 600.0
UNSERVED = """
UPDATE responses_app_lease SET worker = %(me)s, epoch = epoch + 1 WHERE response_id IN (
    SELECT lease.response_id FROM responses_app_lease lease JOIN responses_app_response response ON response.id = lease.response_id
    WHERE response.created_at < clock_timestamp() - make_interval(secs => %(old)s) AND NOT EXISTS (
        SELECT FROM responses_app_worker worker
        WHERE (worker.uid = lease.worker OR lease.model = ANY(worker.served_models))
        AND worker.heartbeat_at > clock_timestamp() - make_interval(secs => %(old)s)
    )
    ORDER BY lease.response_id LIMIT %(most)s FOR UPDATE OF lease SKIP LOCKED
)
RETURNING response_id
"""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease as its holder finds it."""

    epoch: int
    cancelled: bool


def heartbeat(me: UUID, name: str, models: Sequence[str]) -> dict[int, HeldLease]:
    """Say that this worker lives; what it holds, by the primary key of the response."""
    with connection.cursor() as cursor:
        cursor.execute(BEAT, [me, name, list(models)])
    rows = Lease.objects.filter(worker=me).values_list("response_id", "epoch", "cancelled")
    return {pk: HeldLease(epoch, cancelled) for pk, epoch, cancelled in rows}


def claim(me: UUID, models: Sequence[str], *, room: int, most: int, sure: bool) -> list[int]:
    """Take over what nobody runs: up to `most` that had begun, and up to `room` that wait. Primary keys of responses.

    Unless `sure`, only what was given back is taken: whoever has not been able to beat for a while cannot call others dead.
    """
    found = _claim(me, models, RUNNING, most, sure=sure) if most > 0 else []
    if room > 0:
        found += _claim(me, models, WAITING, room, sure=sure)
    return found


def _claim(me: UUID, models: Sequence[str], which: str, most: int, *, sure: bool) -> list[int]:
    if not sure:
        which = f"{which} AND lease.worker IS NULL"
    with connection.cursor() as cursor:
        cursor.execute(CLAIM.format(which=which), {"me": me, "models": list(models), "most": most, "dead": DEAD_S})
        return [pk for (pk,) in cursor.fetchall()]


def unserved(me: UUID, most: int) -> list[int]:
    """Take what nobody has been able to run for UNSERVED_S, to end it. Primary keys of responses."""
    with connection.cursor() as cursor:
        cursor.execute(UNSERVED, {"me": me, "most": most, "old": UNSERVED_S})
        return [pk for (pk,) in cursor.fetchall()]


def renew_epoch(me: UUID, pk: int) -> bool:
    """Take a lease of one's own anew, so that whoever might still write under the old one cannot end it."""
    return Lease.objects.filter(pk=pk, worker=me).update(epoch=F("epoch") + 1) > 0


def record_takeover(pk: int, last_number: int) -> int | None:
    """How often in a row the response has changed hands without getting on, now that its log ends with number `last_number`.

    None if it has ended meanwhile.
    """
    with transaction.atomic():
        lease = Lease.objects.select_for_update().filter(pk=pk).first()
        if lease is None:
            return None
        lease.stalled_takeovers = lease.stalled_takeovers + 1 if lease.last_number == last_number else 0
        lease.last_number = last_number
        lease.save(update_fields=["stalled_takeovers", "last_number"])
    return lease.stalled_takeovers


def cancel(pk: int) -> bool:
    """Whoever runs the response is to end it. False if it has ended."""
    return Lease.objects.filter(pk=pk).update(cancelled=True) > 0


def give_back(me: UUID) -> int:
    """Hold nothing any more, and live no more: others need not wait to be sure. How much there was to give."""
    with transaction.atomic():
        given = Lease.objects.filter(worker=me).update(worker=None)
        Worker.objects.filter(pk=me).delete()
    return given


def waiting() -> int:
    """How many responses wait for room, in all processes."""
    return Lease.objects.filter(waiting=True, worker=None).count()


def purge_workers() -> None:
    """Drop the rows of workers that are long dead."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM responses_app_worker WHERE heartbeat_at < clock_timestamp() - make_interval(secs => %s)", [FORGET_S]
        )


def load(pk: int) -> tuple[Response, Lease, str, bytes] | None:
    """A response to be run on: its row, its lease, the order as JSON and the prompt; None if it is gone."""
    row = Response.objects.select_related("lease", "stored_request").filter(pk=pk, ended_at=None).first()
    parts: Any = row
    if row is None or not hasattr(row, "lease") or not hasattr(row, "stored_request"):
        return None
    return row, parts.lease, parts.stored_request.create_request, bytes(parts.stored_request.prompt_tokens)
