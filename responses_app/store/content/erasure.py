"""Erasure of a project's or a conversation's data: what there is, counted by kind, and its deletion in small transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from responses_app.models import ApiKey, Conversation, Event, Image, Item, LogPage, Membership, Response
from responses_app.store.cluster import leases
from responses_app.store.content import orphans
from responses_app.store.content.deletion import erase

BATCH = 200
# How long a process may take to end a response that is under way.
END_LIMIT_S = 30.0
LOOK_S = 0.2

Counts = Mapping[str, int]


def counted(responses: QuerySet[Response], items: QuerySet[Item], conversations: QuerySet[Conversation]) -> Counts:
    """Count what belongs to these rows, by kind."""
    return {
        "responses": responses.count(),
        "of them running": responses.filter(ended_at=None).count(),
        "events": Event.objects.filter(response__in=responses).count(),
        "pages of sealed logs": LogPage.objects.filter(response__in=responses).count(),
        "conversations": conversations.count(),
        "items": items.count(),
        "fetched images": Image.objects.filter(item__in=items).count(),
    }


def of_project(project: str) -> Counts:
    """Count what a project has, its keys and members included."""
    kept = counted(
        Response.objects.filter(project=project),
        Item.objects.filter(project=project),
        Conversation.objects.filter(project=project),
    )
    keys, members = ApiKey.objects.filter(project=project), Membership.objects.filter(project=project)
    return {**kept, "API keys": keys.count(), "memberships": members.count()}


def of_conversation(row: Conversation) -> Counts:
    """Count what a conversation has: its responses, and the items of both."""
    return counted(row.responses.all(), _items_of(row), Conversation.objects.filter(pk=row.pk))


def erase_project(project: str) -> Iterator[tuple[str, int]]:
    """Erase all responses, conversations and items of a project; after each batch, what it was."""
    responses = Response.objects.filter(project=project)
    yield from _ended(responses)
    yield from _deleted("responses", responses)
    yield from _deleted("conversations", Conversation.objects.filter(project=project))
    yield from _deleted("items", Item.objects.filter(project=project))


def erase_keys(project: str) -> Iterator[tuple[str, int]]:
    """Erase the API keys and the memberships of a project."""
    yield from _deleted("API keys", ApiKey.objects.filter(project=project))
    yield from _deleted("memberships", Membership.objects.filter(project=project))


def erase_conversation(row: Conversation) -> Iterator[tuple[str, int]]:
    """Erase a conversation, its responses and its items, but for items that a response outside of it needs."""
    responses = row.responses.all()
    yield from _ended(responses)
    uids = list(responses.values_list("uid", flat=True))
    keys = list(_items_of(row).values_list("pk", flat=True))
    project = row.project
    row.delete()
    yield "conversations", 1
    for uid in uids:
        erase(project, uid)
    yield "responses", len(uids)
    orphans.erase(project, keys)
    yield "items", len(keys) - Item.objects.filter(pk__in=keys).count()


def _items_of(row: Conversation) -> QuerySet[Item]:
    entered = row.conversation_items.values("item_id")
    return Item.objects.filter(project=row.project, pk__in=entered) | Item.objects.filter(
        project=row.project, response__in=row.responses.all()
    )


def _ended(responses: QuerySet[Response]) -> Iterator[tuple[str, int]]:
    """Have what runs be ended by its process, as DELETE does; what no process ends in time is erased under way."""
    running: Sequence[int] = list(responses.filter(ended_at=None).values_list("pk", flat=True))
    for pk in running:
        leases.cancel(pk)
    deadline = time.monotonic() + END_LIMIT_S
    while running and time.monotonic() < deadline and Response.objects.filter(pk__in=running, ended_at=None).exists():
        time.sleep(LOOK_S)
    if running:
        yield "responses stopped", len(running)


def _deleted(kind: str, rows: QuerySet[Any]) -> Iterator[tuple[str, int]]:
    """Delete the rows, batch by batch."""
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        rows.filter(pk__in=keys).delete()
        yield kind, len(keys)
