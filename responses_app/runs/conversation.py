"""A conversation as a front door asks for it: found by its id, and the items that are to be added to it made whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from responses_app.errors import Invalid, NotFound
from responses_app.models import Conversation
from responses_app.runs import definitions, images
from responses_app.runs.context import with_ids
from responses_app.runs.ids import could_be
from responses_app.store import conversations, history
from responses_app.store.history import Context
from responses_app.store.records import Images, Locked


async def find(project: str, uid: str) -> Conversation:
    """The conversation. Raises NotFound."""
    row = await conversations.find(project, uid) if could_be(uid) else None
    if row is None:
        raise missing(uid)
    return row


async def context(project: str, uid: str) -> Context:
    """All of it, for a response that continues it. Raises NotFound, and Invalid `conversation_locked`."""
    try:
        return await conversations.context(await find(project, uid))
    except Locked as error:
        raise locked() from error


def locked() -> Invalid:
    """Another response is being made for the conversation (checklist 147)."""
    message = "Another process is currently operating on this conversation. Please retry in a few seconds."
    return Invalid(message, param="conversation", code="conversation_locked")


def missing(uid: str) -> NotFound:
    """There is no such conversation, or it is another project's."""
    return NotFound(f"Conversation with id '{uid}' not found.")


async def gather(project: str, items: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], Images]:
    """Items to be added by hand: every one has an id, and a reference is the item that it refers to; and images that were fetched.

    Raises NotFound, Busy, and Invalid for an image or a grammar that is none.
    """
    await definitions.check(project, (), items, "items")
    wanted = [item["id"] for item in items if item["type"] == "item_reference" and could_be(item["id"])]
    whole = with_ids(items, await history.find(project, wanted) if wanted else {}, "items")
    return whole, images.fetched(await images.new(project, items, whole, "items"))
