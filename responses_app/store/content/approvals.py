"""Approvals of MCP calls: each can be used once in a project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from responses_app.models import Approval, Item
from responses_app.store.db import durable_transaction

BATCH = 500
CLAIM_SQL = """
INSERT INTO responses_app_approval (project, request_uid, response_uid)
SELECT %s, uid, %s FROM unnest(%s::text[]) AS uid ON CONFLICT (project, request_uid) DO NOTHING
"""


def claim(project: str, request_uids: Sequence[str], response_uid: str) -> set[str]:
    """Use approvals for the response. Return the ids of the approval requests that are the response's, also from an earlier claim.

    The claim is on the disk when the function returns, so that no crash makes an approval usable again.
    """
    # Sorted, so that two claims of the same approvals do not wait for each other.
    request_ids = sorted(set(request_uids))
    with durable_transaction():
        with connection.cursor() as cursor:
            cursor.execute(CLAIM_SQL, [project, response_uid, request_ids])
        return set(_used(project, request_ids).filter(response_uid=response_uid).values_list("request_uid", flat=True))


def release(project: str, request_uids: Sequence[str], response_uid: str) -> None:
    """Make claims of a response usable again."""
    _used(project, request_uids).filter(response_uid=response_uid).delete()


def used(project: str, request_uids: Sequence[str]) -> set[str]:
    """Return the ids among `request_uids` whose approvals are used."""
    return set(_used(project, request_uids).values_list("request_uid", flat=True))


def _used(project: str, request_uids: Sequence[str]) -> QuerySet[Approval]:
    return Approval.objects.filter(project=project, request_uid__in=request_uids)


def overdue(before: datetime) -> QuerySet[Approval]:
    """Select approvals used before the time `before` whose requests are not stored any more."""
    stored = Item.objects.filter(uid=OuterRef("request_uid"), project=OuterRef("project"))
    return Approval.objects.filter(~Exists(stored), created_at__lt=before)


def prune(before: datetime) -> Iterator[int]:
    """Delete the overdue approvals. Yield the size of each batch."""
    while keys := list(overdue(before).order_by("created_at").values_list("pk", flat=True)[:BATCH]):
        yield Approval.objects.filter(pk__in=keys).delete()[0]
