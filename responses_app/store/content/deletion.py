"""Deletion: a response goes with its log; its items stay only while a later response of its thread still refers to them."""

from __future__ import annotations

from datetime import datetime

from responses_app.models import Item, Response
from responses_app.store.db import durable_transaction


def erase(project: str, uid: str) -> bool:
    """Delete a response for good. False if there is none. Descendants stay readable and can be continued (case H14)."""
    with durable_transaction():
        row = Response.objects.select_for_update().filter(project=project, uid=uid).first()
        if row is None:
            return False
        Item.objects.filter(pk__in=orphaned_items(row)).delete()
        row.delete()
    return True


def orphaned_items(row: Response) -> list[int]:
    """The items that go with a response: its own and those before it that nothing else refers to."""
    own = set(row.items.values_list("pk", flat=True)) | set(row.history)
    others = Response.objects.filter(thread=row.thread).exclude(pk=row.pk)
    kept = {pk for history in others.values_list("history", flat=True) for pk in history}
    kept.update(Item.objects.filter(response__in=others).values_list("pk", flat=True))
    return list(Item.objects.filter(pk__in=own - kept, conversation_items=None).values_list("pk", flat=True))


def expired_unstored(before: datetime, limit: int) -> list[tuple[str, str]]:
    """Project and id of up to `limit` responses of `store:false` that ended before then, those that have waited longest first."""
    rows = Response.objects.filter(stored=False, ended_at__lt=before).order_by("ended_at")
    return list(rows.values_list("project", "uid")[:limit])
