"""Deletion of responses. An item stays as long as a later response of the thread refers to the item."""

from __future__ import annotations

from responses_app.models import Item, LogPage, Response
from responses_app.store.db import durable_transaction


def erase(project: str, uid: str, *, delete_pages: bool = True) -> bool:
    """Delete a response with the log. False if not found. Later responses of the thread stay readable and continuable.

    Without `delete_pages`, the caller drops the partition with the pages of the log.
    """
    with durable_transaction():
        row = Response.objects.select_for_update().filter(project=project, uid=uid).first()
        if row is None:
            return False
        Item.objects.filter(pk__in=orphaned_items(row)).delete()
        if delete_pages:
            LogPage.objects.filter(response=row).delete()
        row.delete()
    return True


def orphaned_items(row: Response) -> list[int]:
    """List items that only `row` refers to: own items and items of the history. Return primary keys."""
    own_items = set(row.items.values_list("pk", flat=True)) | set(row.history)
    others = Response.objects.filter(thread=row.thread).exclude(pk=row.pk)
    needed = {pk for history in others.values_list("history", flat=True) for pk in history}
    needed.update(Item.objects.filter(response__in=others).values_list("pk", flat=True))
    return list(Item.objects.filter(pk__in=own_items - needed, conversation_items=None).values_list("pk", flat=True))
