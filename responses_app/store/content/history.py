"""Conversation history: the items of a chain of responses, and items referenced by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Q

from responses_app.models import Direction, Item, Response, Status
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.content.images import ImageBytes

ENDED = (Status.COMPLETED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Items of a chain or conversation, oldest first, with primary keys. `thread` is the uid of the chain's first response.

    The first `len(keys)` items are stored; a stored response continuing from here stores the rest as input items.
    `images` holds the fetched images of the items; None if not loaded.
    """

    keys: Sequence[int]
    items: Sequence[dict[str, Any]]
    thread: str
    status: str
    # Primary key of the conversation of the new response.
    conversation: int | None = None
    images: ImageBytes | None = None
    # Outputs of server tools for the model, by item id; None if not loaded.
    tool_outputs: Mapping[str, ModelOutput] | None = None

    @property
    def unsaved(self) -> Sequence[dict[str, Any]]:
        """The items not in the store."""
        return self.items[len(self.keys) :]

    @property
    def has_ended(self) -> bool:
        """True if the previous response has ended and can be continued."""
        return self.status in ENDED


async def context(project: str, uid: str) -> ConversationContext | None:
    """Load the context of a response for a continuation, in two queries. None if not found."""
    # A response of `store: false` cannot be continued, because the continuation would store its items.
    row = (
        await Response.objects.filter(project=project, uid=uid, stored=True)
        .values("id", "history", "thread", "status")
        .afirst()
    )
    if row is None:
        return None
    items = Item.objects.filter(Q(pk__in=row["history"]) | Q(response_id=row["id"])).order_by("pk")
    bodies = dict([pair async for pair in items.values_list("pk", "body")])
    # Own items follow the history. A history from a conversation may differ from the order of primary keys.
    keys = list(dict.fromkeys([pk for pk in row["history"] if pk in bodies] + list(bodies)))
    return ConversationContext(keys, [orjson.loads(bodies[pk]) for pk in keys], row["thread"], row["status"])


async def load_for_takeover(row: Response) -> tuple[ConversationContext, ConversationContext]:
    """Load history and input of a running response, for a takeover."""
    own_items = [
        pair
        async for pair in Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("pk", "body")
    ]
    bodies = dict([pair async for pair in Item.objects.filter(pk__in=row.history).values_list("pk", "body")])
    keys = [pk for pk in row.history if pk in bodies]
    before = ConversationContext(
        keys, [orjson.loads(bodies[pk]) for pk in keys], row.thread, Status.COMPLETED, row.conversation_id
    )
    return before, ConversationContext(
        [pk for pk, _ in own_items], [orjson.loads(body) for _, body in own_items], row.thread, row.status
    )


async def find(project: str, uids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Find stored items by id, for `item_reference`. For an id stored twice, the older item wins."""
    items = Item.objects.filter(project=project, uid__in=uids).exclude(response__stored=False, conversation_items=None)
    rows = items.order_by("-pk").values_list("uid", "body")
    return {uid: orjson.loads(body) async for uid, body in rows}
