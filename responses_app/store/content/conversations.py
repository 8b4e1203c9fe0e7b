"""The SQL of conversations: made, changed, extended, read by pages and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db.models import QuerySet
from django.utils import timezone

from responses_app.models import Conversation, ConversationItem, Direction, Item, Response
from responses_app.store.content import images, orphans
from responses_app.store.content.history import ConversationContext
from responses_app.store.content.input_items import ItemPage
from responses_app.store.db import durable_transaction
from responses_app.store.log.records import ConversationLocked, ImageBytes


class ItemExists(Exception):
    """The conversation has that item already."""


async def find(project: str, uid: str) -> Conversation | None:
    """The conversation, or None."""
    return await Conversation.objects.filter(project=project, uid=uid).afirst()


def create(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> None:
    """Keep a new conversation and its first items, at once or not at all."""
    with durable_transaction():
        row.save(force_insert=True)
        _insert_entries(row, items, fetched)


def add(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> list[str]:
    """Append items, all or none; their bodies, in the same order. Raises Locked, Present, Conversation.DoesNotExist."""
    with durable_transaction():
        _open(row)
        if row.conversation_items.filter(uid__in=[item["id"] for item in items]).exists():
            raise ItemExists
        return _insert_entries(row, items, fetched)


def remove(row: Conversation, uid: str) -> bool:
    """Take an item out. False if it is not there. Raises Locked, Conversation.DoesNotExist."""
    with durable_transaction():
        _open(row)
        keys = list(row.conversation_items.filter(uid=uid).values_list("item_id", flat=True))
        row.conversation_items.filter(uid=uid).delete()
        orphans.mark(keys, timezone.now())
        return bool(keys)


def delete(row: Conversation) -> None:
    """Delete a conversation. Items that no response has become orphans. Raises Locked, Conversation.DoesNotExist."""
    with durable_transaction():
        _open(row)
        keys = list(row.conversation_items.values_list("item_id", flat=True))
        row.delete()
        orphans.mark(keys, timezone.now())


async def context(row: Conversation) -> ConversationContext:
    """All items, oldest first, in one query however long the conversation is. Raises Locked while a response adds to it."""
    if await active_response(row).aexists():
        raise ConversationLocked
    entries = row.conversation_items.order_by("pk").values_list("item_id", "item__body")
    pairs = [pair async for pair in entries]
    items = [orjson.loads(body) for _, body in pairs]
    return ConversationContext([pk for pk, _ in pairs], items, row.uid, "completed", conversation=row.pk)


def active_response(row: Conversation) -> QuerySet[Response]:
    """The response that is under way in the conversation, if there is one."""
    return Response.objects.filter(conversation=row, ended_at=None)


async def item(row: Conversation, uid: str) -> str | None:
    """The body of one item, or None."""
    return await row.conversation_items.filter(uid=uid).values_list("item__body", flat=True).afirst()


async def page(row: Conversation, *, limit: int, newest_first: bool, after: str | None) -> ItemPage | None:
    """Up to `limit` items behind the item `after`. None if there is no such item."""
    entries = row.conversation_items.order_by("-pk" if newest_first else "pk")
    if after is not None:
        mark = await row.conversation_items.filter(uid=after).values_list("pk", flat=True).afirst()
        if mark is None:
            return None
        entries = entries.filter(pk__lt=mark) if newest_first else entries.filter(pk__gt=mark)
    rows = [pair async for pair in entries.values_list("item_id", "item__body")[: limit + 1]]
    return ItemPage(rows[:limit], len(rows) > limit)


def _open(row: Conversation) -> None:
    """Wait for others that add, since the order of entries is that of their keys; do not wait for a response."""
    Conversation.objects.select_for_update().get(pk=row.pk)
    if active_response(row).exists():
        raise ConversationLocked


def _insert_entries(row: Conversation, items: Sequence[Mapping[str, Any]], fetched: ImageBytes) -> list[str]:
    """New items are kept; one whose id is known is linked, and what is stored wins over what was sent (checklist 142)."""
    wanted: dict[str, Mapping[str, Any]] = {}
    for item in items:
        wanted.setdefault(item["id"], item)
    known = (
        Item.objects.filter(project=row.project, uid__in=wanted)
        .exclude(response__stored=False, conversation_items=None)
        .order_by("-pk")
    )
    rows = {one.uid: one for one in known}
    new = [_item(row, body) for uid, body in wanted.items() if uid not in rows]
    Item.objects.bulk_create(new)
    images.insert(new, fetched)
    rows.update((one.uid, one) for one in new)
    ConversationItem.objects.bulk_create([ConversationItem(conversation=row, item=rows[uid], uid=uid) for uid in wanted])
    return [rows[item["id"]].body for item in items]


def _item(row: Conversation, body: Mapping[str, Any]) -> Item:
    return Item(
        uid=body["id"],
        project=row.project,
        direction=Direction.INPUT,
        type=body["type"],
        body=orjson.dumps(body).decode(),
    )
