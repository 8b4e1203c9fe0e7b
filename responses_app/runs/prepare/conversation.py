"""A conversation as a front door asks for it: found by its id, and the items that are to be added to it made whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import Conversation
from responses_app.runs.ids import is_id
from responses_app.runs.prepare import definitions, images
from responses_app.runs.prepare.context import with_ids
from responses_app.store.content import conversations, history
from responses_app.store.content.history import ConversationContext
from responses_app.store.log.records import ConversationLocked, ImageBytes


async def find(project: str, uid: str) -> Conversation:
    """The conversation. Raises NotFound."""
    row = await conversations.find(project, uid) if is_id(uid) else None
    if row is None:
        raise missing(uid)
    return row


async def context(project: str, uid: str) -> ConversationContext:
    """All of it, for a response that continues it. Raises NotFound, and Invalid `conversation_locked`."""
    try:
        return await conversations.context(await find(project, uid))
    except ConversationLocked as error:
        raise locked() from error


def locked() -> InvalidRequest:
    """Another response is being made for the conversation (checklist 147)."""
    message = "Another process is currently operating on this conversation. Please retry in a few seconds."
    return InvalidRequest(message, param="conversation", code="conversation_locked")


def missing(uid: str) -> NotFound:
    """There is no such conversation, or it is another project's."""
    return NotFound(f"Conversation with id '{uid}' not found.")


async def prepare_items(project: str, items: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], ImageBytes]:
    """Items to be added by hand: every one has an id, and a reference is the item that it refers to; and images that were fetched.

    Raises NotFound, Busy, and Invalid for an image or a grammar that is none.
    """
    await definitions.check(project, (), items, "items")
    wanted = [item["id"] for item in items if item["type"] == "item_reference" and is_id(item["id"])]
    whole = with_ids(items, await history.find(project, wanted) if wanted else {}, "items")
    return whole, images.fetched(await images.new_images(project, items, whole, "items"))
