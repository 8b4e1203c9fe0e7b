"""Rows of webhook endpoints and deliveries: claims under a lease, outcomes, retries, retention."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import OuterRef, QuerySet, Subquery

from responses_app.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint

MAX_ENDPOINTS_PER_PROJECT: Final = 20
# Longer than an attempt: when the process has died, another process sends the delivery again after this time.
LEASE: Final = timedelta(seconds=60)
# Pauses between the attempts, about a day together, and the share by which a pause may be longer.
PAUSES: Final = tuple(timedelta(seconds=pause) for pause in (5, 300, 1800, 7200, 14_400, 28_800, 32_400))
JITTER: Final = 0.1
GONE: Final = 410
BATCH: Final = 1_000
DISABLED: Final = "The endpoint answered 410 and was disabled."

# The first due delivery of the endpoint that waits the longest. Each step of `busy` finds the next endpoint with pending deliveries
# in an index, so that a long queue of one endpoint costs nothing. Deliveries that another process claims are skipped.
_CLAIM_SQL: Final = """
WITH RECURSIVE busy (id) AS (
  (SELECT endpoint_id FROM responses_app_webhookdelivery WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT (SELECT endpoint_id FROM responses_app_webhookdelivery WHERE status = 'pending' AND endpoint_id > busy.id
    ORDER BY endpoint_id LIMIT 1) FROM busy WHERE busy.id IS NOT NULL),
due AS MATERIALIZED (
  SELECT delivery.id, delivery.due_at FROM busy JOIN responses_app_webhookendpoint endpoint USING (id) CROSS JOIN LATERAL (
    SELECT id, due_at FROM responses_app_webhookdelivery WHERE endpoint_id = endpoint.id AND status = 'pending' AND due_at <= %(now)s
    ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS delivery
  WHERE endpoint.project <> ALL(%(full)s))
UPDATE responses_app_webhookdelivery SET claim = %(claim)s, due_at = %(until)s
WHERE id = (SELECT id FROM due ORDER BY due_at, id LIMIT 1) RETURNING id
"""
# Longest wait of a delivery, by the number of its attempts.
_LONGEST: Final = [2 * LEASE, *(max(LEASE, pause * (1 + JITTER)) + LEASE for pause in PAUSES)]
_MEND_SQL: Final = """
UPDATE responses_app_webhookdelivery SET due_at = CASE WHEN claim IS NULL THEN %(now)s ELSE %(until)s END
WHERE status = 'pending' AND due_at > %(now)s + (%(longest)s::interval[])[attempts + 1]
"""


class TooManyEndpoints(Exception):
    """The project has MAX_ENDPOINTS_PER_PROJECT endpoints."""


def endpoints(project: str) -> QuerySet[WebhookEndpoint]:
    """Return the endpoints of a project."""
    return WebhookEndpoint.objects.filter(project=project)


def create(row: WebhookEndpoint) -> None:
    """Insert an endpoint. Raises TooManyEndpoints."""
    if endpoints(row.project).count() >= MAX_ENDPOINTS_PER_PROJECT:
        raise TooManyEndpoints
    row.save(force_insert=True)


def claim_next(now: datetime, full: Collection[str] = ()) -> WebhookDelivery | None:
    """Claim the delivery that is due for the longest time, of a project that is not in `full`; None if no delivery is due."""
    values: dict[str, Any] = {"now": now, "until": now + LEASE, "full": list(full), "claim": uuid.uuid4()}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM_SQL, values)
        row = cursor.fetchone()
    return None if row is None else WebhookDelivery.objects.select_related("endpoint").filter(pk=row[0]).first()


def mend_due(now: datetime) -> int:
    """Let deliveries be due that wait longer than any pause: the clock was set back since. Return their number."""
    with connection.cursor() as cursor:
        cursor.execute(_MEND_SQL, {"now": now, "until": now + LEASE, "longest": _LONGEST})
        return int(cursor.rowcount)


def release(row: WebhookDelivery, now: datetime) -> None:
    """Return a claimed delivery to the queue. The attempt does not count."""
    _claimed(row).update(claim=None, due_at=now)


def note_answer(row: WebhookDelivery, status_code: int | None, error: str, now: datetime) -> None:
    """Note the outcome of an attempt of the claimed delivery `row`: delivered, due again after a pause, or failed.

    The status 410 disables the endpoint and ends its other deliveries. Nothing changes if the claim is lost.
    """
    outcome = {"claim": None, "attempts": row.attempts + 1, "attempted_at": now, "status_code": status_code, "error": error}
    if status_code is not None and 200 <= status_code < 300:
        _claimed(row).update(**outcome, status=DeliveryStatus.DELIVERED)
    elif status_code == GONE:
        with transaction.atomic():
            _claimed(row).update(**outcome, status=DeliveryStatus.FAILED)
            WebhookEndpoint.objects.filter(pk=row.endpoint_id).update(disabled_at=now)
            pending = WebhookDelivery.objects.filter(endpoint=row.endpoint_id, status=DeliveryStatus.PENDING)
            pending.update(status=DeliveryStatus.FAILED, claim=None, error=DISABLED)
    elif row.attempts < len(PAUSES):
        pause = PAUSES[row.attempts] * (1 + JITTER * random.random())
        _claimed(row).update(**outcome, due_at=now + pause)
    else:
        _claimed(row).update(**outcome, status=DeliveryStatus.FAILED)


def resend(row: WebhookDelivery, now: datetime) -> None:
    """Let a delivery that has ended be sent again, with all attempts, and enable the endpoint. One that waits is sent at once."""
    with transaction.atomic():
        WebhookEndpoint.objects.filter(pk=row.endpoint_id).update(disabled_at=None)
        ended = WebhookDelivery.objects.filter(pk=row.pk).exclude(status=DeliveryStatus.PENDING)
        if not ended.update(status=DeliveryStatus.PENDING, attempts=0, due_at=now, claim=None):
            WebhookDelivery.objects.filter(pk=row.pk, claim=None).update(due_at=now)


def newest_deliveries(rows: Sequence[WebhookEndpoint]) -> Mapping[int, WebhookDelivery]:
    """Return the newest delivery of each endpoint that has one, by the key of the endpoint."""
    newest = WebhookDelivery.objects.filter(endpoint=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    keys = WebhookEndpoint.objects.filter(pk__in=[row.pk for row in rows]).values_list(Subquery(newest), flat=True)
    return {delivery.endpoint_id: delivery for delivery in WebhookDelivery.objects.filter(pk__in=[*keys])}


def overdue(before: datetime) -> QuerySet[WebhookDelivery]:
    """Select deliveries of responses that ended before a time."""
    return WebhookDelivery.objects.filter(created_at__lt=before)


def prune(before: datetime) -> Iterator[int]:
    """Delete the overdue deliveries. Yield the size of each batch."""
    while keys := list(overdue(before).order_by("created_at").values_list("pk", flat=True)[:BATCH]):
        yield WebhookDelivery.objects.filter(pk__in=keys).delete()[0]


def _claimed(row: WebhookDelivery) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(pk=row.pk, claim=row.claim, status=DeliveryStatus.PENDING)
