"""Queries of conversations: create, change, read in pages, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.contrib.postgres.aggregates import ArrayAgg
from django.db import DatabaseError
from django.db.models import QuerySet
from django.utils import timezone

from responses_app.models import Conversation, ConversationItem, Direction, Item, Response
from responses_app.store.content import images, orphans
from responses_app.store.content.history import ConversationContext, SkippedItems, parse_bodies
from responses_app.store.content.images import ImageBytes
from responses_app.store.content.input_items import ItemPage
from responses_app.store.db import durable_transaction


class ConversationLocked(DatabaseError):
    """A different response of the conversation is running, or the conversation has changed since it was read."""


class ConversationDeleted(DatabaseError):
    """The conversation was deleted after it was read."""


class ItemExists(Exception):
    """The conversation already has an item with the same id."""


async def find(project: str, uid: str) -> Conversation | None:
    """Find a conversation by id; None if not found."""
    return await Conversation.objects.filter(project=project, uid=uid).afirst()


def create(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> None:
    """Insert a conversation with initial items, in a single transaction."""
    with durable_transaction():
        row.save(force_insert=True)
        _insert_items(row, items, fetched)


def add(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> list[str]:
    """Append items, all or none. Return the stored bodies in the same order.

    Raises ConversationLocked, ItemExists, Conversation.DoesNotExist.
    """
    with durable_transaction():
        _lock(row)
        if row.conversation_items.filter(uid__in=[item["id"] for item in items]).exists():
            raise ItemExists
        return _insert_items(row, items, fetched)


def remove(row: Conversation, uid: str) -> bool:
    """Remove an item. False if not found. Raises ConversationLocked, Conversation.DoesNotExist."""
    with durable_transaction():
        _lock(row)
        keys = list(row.conversation_items.filter(uid=uid).values_list("item_id", flat=True))
        row.conversation_items.filter(uid=uid).delete()
        orphans.mark(keys, timezone.now())
        return bool(keys)


def delete(row: Conversation) -> None:
    """Delete a conversation. Items without a response become orphans.

    Raises ConversationLocked, Conversation.DoesNotExist.
    """
    with durable_transaction():
        _lock(row)
        orphans.unlink(row.pk, timezone.now())
        row.delete()


async def context(row: Conversation, skipped: SkippedItems | None = None) -> ConversationContext:
    """Read all items that are not `skipped`, oldest first. Raises ConversationLocked while a response of the conversation runs."""
    if await active_response(row).aexists():
        raise ConversationLocked
    entries = row.conversation_items.order_by("pk")
    if skipped is not None:
        read = await _context_without(row, entries, skipped)
        if read is not None:
            return read
    pairs = [pair async for pair in entries.values_list("item_id", "item__body")]
    items = await parse_bodies([body for _, body in pairs])
    return ConversationContext([pk for pk, _ in pairs], items, row.uid, "completed", conversation=row.pk)


async def _context_without(
    row: Conversation, entries: QuerySet[ConversationItem], skipped: SkippedItems
) -> ConversationContext | None:
    """Read the items that are not `skipped`; None if these are not the first items any more."""
    keys = (await entries.order_by().aaggregate(keys=ArrayAgg("item_id", order_by="pk")))["keys"] or []
    if not skipped.matches(keys):
        return None
    to_read = skipped.keys_to_read(keys)
    bodies = dict([pair async for pair in Item.objects.filter(pk__in=to_read).values_list("pk", "body")])
    if len(bodies) < len(to_read):
        return None
    items = await parse_bodies([bodies[pk] for pk in to_read])
    return ConversationContext(to_read, items, row.uid, "completed", conversation=row.pk, skipped=skipped, all_keys=keys)


def active_response(row: Conversation) -> QuerySet[Response]:
    """Select the running response of a conversation; at most 1 row."""
    return Response.objects.filter(conversation=row, ended_at=None)


async def item(row: Conversation, uid: str) -> str | None:
    """Read the body of an item; None if not found."""
    return await row.conversation_items.filter(uid=uid).values_list("item__body", flat=True).afirst()


async def page(row: Conversation, *, limit: int, newest_first: bool, after: str | None) -> ItemPage | None:
    """Read up to `limit` items after the item `after`. None if `after` is not found."""
    entries = row.conversation_items.order_by("-pk" if newest_first else "pk")
    if after is not None:
        position = await row.conversation_items.filter(uid=after).values_list("pk", flat=True).afirst()
        if position is None:
            return None
        entries = entries.filter(pk__lt=position) if newest_first else entries.filter(pk__gt=position)
    rows = [pair async for pair in entries.values_list("item_id", "item__body")[: limit + 1]]
    return ItemPage(rows[:limit], len(rows) > limit)


def _lock(row: Conversation) -> None:
    """Lock a conversation against concurrent additions, because primary keys determine the order of items.

    Does not wait for a running response: raises ConversationLocked instead.
    """
    Conversation.objects.select_for_update().get(pk=row.pk)
    if active_response(row).exists():
        raise ConversationLocked


def _insert_items(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> list[str]:
    """Insert new items and link all items. A known id links the stored item; the body in the request is ignored.

    The lock waits for a deletion of stored items. An item that is deleted then is inserted as a new one.
    """
    by_id: dict[str, Mapping[str, Any]] = {}
    for item in items:
        by_id.setdefault(item["id"], item)
    stored = (
        Item.objects.filter(project=row.project, uid__in=by_id)
        .exclude(response__stored=False, conversation_items=None)
        .order_by("pk")
        .select_for_update(of=("self",), no_key=True)
    )
    # For an id stored twice, the older item wins.
    rows = {item.uid: item for item in reversed(stored)}
    new = [_item(row, body) for uid, body in by_id.items() if uid not in rows]
    Item.objects.bulk_create(new)
    images.insert([(item.pk, item.uid) for item in new], fetched)
    rows.update((item.uid, item) for item in new)
    ConversationItem.objects.bulk_create([ConversationItem(conversation=row, item=rows[uid], uid=uid) for uid in by_id])
    return [rows[item["id"]].body for item in items]


def _item(row: Conversation, body: Mapping[str, Any]) -> Item:
    return Item(
        uid=body["id"],
        project=row.project,
        direction=Direction.INPUT,
        type=body["type"],
        body=orjson.dumps(body).decode(),
    )
