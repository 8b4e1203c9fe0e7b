"""Conversation history: the items of a chain of responses, and items referenced by id."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import orjson
from django.db import DatabaseError
from django.db.models import Q

from responses_app.models import Direction, Item, Response, Status
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.content.images import ImageBytes

# Characters of JSON that take less than a millisecond to parse.
MAX_LOOP_CHARS = 1 << 16
ENDED = (Status.COMPLETED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class SkippedItems:
    """Oldest items of a long context, which are not read because no prompt has space for these.

    They are among the first `count` items, whose keys `digest` identifies; those with the keys `still_read` are read. `first` is the id of
    the item behind the first `count`. `size` is the sum of the estimated tokens of the skipped items, and `calls` has the hashes of
    their call ids.
    """

    count: int
    digest: bytes
    still_read: Sequence[int]
    first: str
    size: int
    calls: array[int]

    def matches(self, keys: Sequence[int]) -> bool:
        """Return True if a context with `keys` begins with the skipped items, and has one more item."""
        return len(keys) > self.count and digest_keys(keys[: self.count]) == self.digest

    def keys_to_read(self, keys: Sequence[int]) -> list[int]:
        """Return the keys of the items to read, of a context with these keys."""
        return [*self.still_read, *keys[self.count :]]


# Finds the items to skip of a context by its thread.
FindSkipped: TypeAlias = Callable[[str], SkippedItems | None]


class PreviousDeleted(DatabaseError):
    """The previous response was deleted after it was read."""


def digest_keys(keys: Sequence[int]) -> bytes:
    """Return a digest of primary keys."""
    return blake2b(array("q", keys).tobytes(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Items of a chain or conversation, oldest first, with primary keys. `thread` is the uid of the chain's first response.

    The first `len(keys)` items are stored; a stored response continuing from here stores the rest as input items.
    `images` holds the fetched images of the items; None if not loaded. `all_keys` has also the keys of `skipped` items.
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
    skipped: SkippedItems | None = None
    all_keys: Sequence[int] = ()

    @property
    def history(self) -> Sequence[int]:
        """Keys of all items of the context, also of skipped items."""
        return self.keys if self.skipped is None else self.all_keys

    @property
    def unsaved(self) -> Sequence[dict[str, Any]]:
        """The items not in the store."""
        return self.items[len(self.keys) :]

    @property
    def has_ended(self) -> bool:
        """True if the previous response has ended and can be continued."""
        return self.status in ENDED


async def context(project: str, uid: str, find_skipped: FindSkipped | None = None) -> ConversationContext | None:
    """Load the context of a response for a continuation, in two queries. None if not found."""
    # A response of `store: false` cannot be continued, because the continuation would store its items.
    row = (
        await Response.objects.filter(project=project, uid=uid, stored=True)
        .values("id", "history", "thread", "status")
        .afirst()
    )
    if row is None:
        return None
    history, skipped = row["history"], find_skipped(row["thread"]) if find_skipped else None
    if skipped is not None and not skipped.matches(history):
        skipped = None
    earlier = history if skipped is None else skipped.keys_to_read(history)
    items = Item.objects.filter(Q(pk__in=earlier) | Q(response_id=row["id"])).order_by("pk")
    bodies = dict([pair async for pair in items.values_list("pk", "body")])
    # Own items follow the history. A history from a conversation may differ from the order of primary keys.
    keys = list(dict.fromkeys([pk for pk in earlier if pk in bodies] + list(bodies)))
    values = await parse_bodies([bodies[pk] for pk in keys])
    all_keys = () if skipped is None else [*history, *keys[len(earlier) :]]
    return ConversationContext(keys, values, row["thread"], row["status"], skipped=skipped, all_keys=all_keys)


async def parse_bodies(bodies: Sequence[str]) -> list[dict[str, Any]]:
    """Parse the JSON of items, in a thread if they have many characters."""

    def parse() -> list[dict[str, Any]]:
        return [orjson.loads(body) for body in bodies]

    is_long = sum(map(len, bodies)) > MAX_LOOP_CHARS
    return await asyncio.to_thread(parse) if is_long else parse()


async def find_response(project: str, item: str, uid: str) -> Response | None:
    """Find the response `uid`, or the one with the item `item`, with id and `stored` alone. None if there is neither."""
    items = Item.objects.filter(project=project, uid=item)
    rows = Response.objects.filter(Q(uid=uid) | Q(pk__in=items.values("response_id")), project=project)
    return await rows.only("uid", "stored").order_by("-stored").afirst()


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
