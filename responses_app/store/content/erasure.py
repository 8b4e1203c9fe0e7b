"""Erasure of all data of a project or a conversation: counts by kind, and deletion in small transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import Coalesce

from responses_app.models import (
    ApiKey,
    Approval,
    Container,
    Conversation,
    Event,
    File,
    Image,
    Item,
    LogPage,
    Membership,
    RefusedRequest,
    Response,
    ToolOutput,
    VectorStore,
    WebhookEndpoint,
)
from responses_app.store.cluster import leases
from responses_app.store.content import chat_threads, orphans
from responses_app.store.content.batches import change_in_batches
from responses_app.store.content.deletion import delete_rows
from responses_app.store.files import container_files, files

BATCH = 200
MAX_KEYS = 400
NOT_ERASED = "responses not erased"
LEFT = "responses that began meanwhile"
# Seconds for the owner to end a running response.
CANCEL_TIMEOUT_S = 30.0
POLL_S = 0.2

Counts = Mapping[str, int]


def count_rows(responses: QuerySet[Response], items: QuerySet[Item], conversations: QuerySet[Conversation]) -> Counts:
    """Count rows by kind: responses, conversations, items, events, pages, images and tool outputs."""
    return {
        "responses": responses.count(),
        "of them running": responses.filter(ended_at=None).count(),
        "events": Event.objects.filter(response__in=responses).aggregate(count=Sum(Coalesce("events", 1), default=0))["count"],
        "pages of archived logs": LogPage.objects.filter(response__in=responses).count(),
        "conversations": conversations.count(),
        "items": items.count(),
        "fetched images and texts of files": Image.objects.filter(item__in=items).count(),
        "tool outputs": ToolOutput.objects.filter(response__in=responses).count(),
    }


def count_project(project: str) -> Counts:
    """Count the data of a project, including API keys and memberships."""
    counts = count_rows(
        Response.objects.filter(project=project),
        Item.objects.filter(project=project),
        Conversation.objects.filter(project=project),
    )
    keys, members = ApiKey.objects.filter(project=project), Membership.objects.filter(project=project)
    approvals = Approval.objects.filter(project=project)
    counts = {
        **counts,
        "files": File.objects.filter(project=project).count(),
        "containers": Container.objects.filter(project=project).count(),
        "vector stores": VectorStore.objects.filter(project=project).count(),
        "refused requests": RefusedRequest.objects.filter(project=project).count(),
        "webhook endpoints": WebhookEndpoint.objects.filter(project=project).count(),
    }
    return {**counts, "approvals": approvals.count(), "API keys": keys.count(), "memberships": members.count()}


def count_conversation(row: Conversation) -> Counts:
    """Count the data of a conversation, including responses and items of responses."""
    return count_rows(row.responses.all(), _items_of(row), Conversation.objects.filter(pk=row.pk))


def erase_project(project: str) -> Iterator[tuple[str, int]]:
    """Erase the responses, conversations, items, vector stores, files, containers, webhooks and approvals of a project.

    Responses that begin meanwhile stay, with their conversations and the items that these need. Yield kind and size of each batch,
    and the number of these responses.
    """
    responses = Response.objects.filter(project=project)
    newest = responses.aggregate(newest=Max("pk"))["newest"] or 0
    earlier = responses.filter(pk__lte=newest)
    yield from cancel_running(earlier)
    yield from erase_responses(earlier)
    yield from _delete_in_batches("conversations", Conversation.objects.filter(project=project, responses=None))
    yield from _erase_items(project)
    if left := responses.filter(pk__gt=newest).count():
        yield LEFT, left
    # Before the files, so that no file is removed from each store by itself.
    yield from _delete_in_batches("vector stores", VectorStore.objects.filter(project=project))
    yield from (("files", size) for size in files.delete_all(File.objects.filter(project=project)))
    yield from (("containers", size) for size in container_files.delete_all(Container.objects.filter(project=project)))
    yield from _delete_in_batches("refused requests", RefusedRequest.objects.filter(project=project))
    yield from _delete_in_batches("webhook endpoints", WebhookEndpoint.objects.filter(project=project))
    yield from _delete_in_batches("approvals", Approval.objects.filter(project=project))
    yield from chat_threads.prune()


def erase_keys(project: str) -> Iterator[tuple[str, int]]:
    """Erase the API keys and memberships of a project. Yield kind and size of each batch."""
    yield from _delete_in_batches("API keys", ApiKey.objects.filter(project=project))
    yield from _delete_in_batches("memberships", Membership.objects.filter(project=project))


def erase_conversation(row: Conversation) -> Iterator[tuple[str, int]]:
    """Erase a conversation with responses and items, except items needed by a response elsewhere."""
    keys, newest = set[int](), 0
    # Clients may go on with the conversation meanwhile.
    while response_keys := list(row.responses.filter(pk__gt=newest).order_by("-pk").values_list("pk", flat=True)):
        newest = response_keys[0]
        yield from cancel_running(Response.objects.filter(pk__in=response_keys))
        keys.update(_items_of(row).values_list("pk", flat=True))
        for chunk in chunks(response_keys):
            yield from erase_responses(Response.objects.filter(pk__in=chunk))
    # The conversation last, and with the items that it alone has needed: a command that was killed finds these again.
    with transaction.atomic():
        keys.update(_items_of(row).values_list("pk", flat=True))
        project = row.project
        row.delete()
        sum(orphans.erase(project, sorted(keys), waits=True))
    yield "conversations", 1
    yield "items", len(keys) - Item.objects.filter(pk__in=keys).count()
    yield from chat_threads.prune()


def erase_responses(rows: QuerySet[Response]) -> Iterator[tuple[str, int]]:
    """Erase responses; wait for locked ones. Yield kind and size of each batch, and the number of responses that cannot be erased."""
    # Clients may create more meanwhile.
    newest = rows.aggregate(newest=Max("pk"))["newest"]
    for size in change_in_batches(rows, partial(delete_rows, waits=True), waits=True):
        yield "responses", size
    if newest is not None and (left := rows.filter(pk__lte=newest).count()):
        yield NOT_ERASED, left


def erase_rows(rows: Sequence[Response]) -> list[Response]:
    """Erase responses in batches. Return the erased responses."""
    erased = Response.objects.filter(pk__in=[row.pk for row in rows])
    for _ in erase_responses(erased):
        pass
    left = set(erased.values_list("pk", flat=True))
    return [row for row in rows if row.pk not in left]


def chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    """Split keys into parts that fit into a statement."""
    return (keys[start : start + MAX_KEYS] for start in range(0, len(keys), MAX_KEYS))


def _items_of(row: Conversation) -> QuerySet[Item]:
    linked = row.conversation_items.values("item_id")
    return Item.objects.filter(project=row.project, pk__in=linked) | Item.objects.filter(
        project=row.project, response__in=row.responses.all()
    )


def cancel_running(responses: QuerySet[Response]) -> Iterator[tuple[str, int]]:
    """Cancel running responses and wait up to CANCEL_TIMEOUT_S seconds; the caller erases the rest while running."""
    stopped, deadline = set[int](), time.monotonic() + CANCEL_TIMEOUT_S
    while running := set(responses.filter(ended_at=None).values_list("pk", flat=True)):
        # Another may have started in the conversation of the first.
        for pk in running - stopped:
            leases.cancel(pk)
        stopped |= running
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    if stopped:
        yield "responses stopped", len(stopped)


def _erase_items(project: str) -> Iterator[tuple[str, int]]:
    """Erase the items of a project that no response and no conversation needs. Yield kind and size of each batch."""
    rows, last = Item.objects.filter(project=project, response=None, conversation_items=None).order_by("pk"), 0
    while keys := list(rows.filter(pk__gt=last).values_list("pk", flat=True)[: orphans.BATCH]):
        yield from (("items", size) for size in orphans.erase(project, keys, waits=True))
        last = keys[-1]


def _delete_in_batches(kind: str, rows: QuerySet[Any]) -> Iterator[tuple[str, int]]:
    """Delete rows in batches. Yield kind and size of each batch."""
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        rows.filter(pk__in=keys).delete()
        yield kind, len(keys)
