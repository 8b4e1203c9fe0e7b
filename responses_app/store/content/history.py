"""What was said before: the items of a chain, and the items that a request refers to by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Q

from responses_app.models import Direction, Item, Response, Status
from responses_app.store.log.records import ImageBytes

READY = (Status.COMPLETED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """All items up to and including one response, oldest first, with their primary keys and the thread they belong to.

    Items behind those that have keys are not in the store: a stored response that continues from here keeps them as its own.
    `images` are those of the items, where they are known; None has them looked up.
    """

    keys: Sequence[int]
    items: Sequence[dict[str, Any]]
    thread: str
    status: str
    # The primary key of the conversation that the response is to go into.
    conversation: int | None = None
    images: ImageBytes | None = None

    @property
    def carried(self) -> Sequence[dict[str, Any]]:
        """The items that are not in the store."""
        return self.items[len(self.keys) :]

    @property
    def ready(self) -> bool:
        """Whether the response has ended, so that it can be continued."""
        return self.status in READY


async def context(project: str, uid: str) -> ConversationContext | None:
    """The context that a continuation of `uid` starts from, in two queries however long the chain is. None if there is none."""
    # What is kept for polling alone cannot be continued: the continuation would keep it for ever.
    row = (
        await Response.objects.filter(project=project, uid=uid, stored=True)
        .values("id", "history", "thread", "status")
        .afirst()
    )
    if row is None:
        return None
    items = Item.objects.filter(Q(pk__in=row["history"]) | Q(response_id=row["id"])).order_by("pk")
    bodies = dict([pair async for pair in items.values_list("pk", "body")])
    # Its own items follow its history, which may have come out of a conversation and so in another order than that of the keys.
    keys = list(dict.fromkeys([pk for pk in row["history"] if pk in bodies] + list(bodies)))
    return ConversationContext(keys, [orjson.loads(bodies[pk]) for pk in keys], row["thread"], row["status"])


async def of_response(row: Response) -> tuple[ConversationContext, ConversationContext]:
    """What came before a response that is under way, and its own input, as it found them when it began."""
    own = [
        pair
        async for pair in Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("pk", "body")
    ]
    bodies = dict([pair async for pair in Item.objects.filter(pk__in=row.history).values_list("pk", "body")])
    keys = [pk for pk in row.history if pk in bodies]
    before = ConversationContext(
        keys, [orjson.loads(bodies[pk]) for pk in keys], row.thread, Status.COMPLETED, row.conversation_id
    )
    return before, ConversationContext([pk for pk, _ in own], [orjson.loads(body) for _, body in own], row.thread, row.status)


async def find(project: str, uids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Stored items by id, for `item_reference`; the oldest wins where an id was stored twice."""
    items = Item.objects.filter(project=project, uid__in=uids).exclude(response__stored=False, conversation_items=None)
    rows = items.order_by("-pk").values_list("uid", "body")
    return {uid: orjson.loads(body) async for uid, body in rows}
