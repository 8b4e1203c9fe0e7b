"""Conversations and earlier responses: lookup by id, and preparation of items that a client adds to a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import Conversation
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import is_id
from responses_app.runs.prepare.grammars import check_grammars
from responses_app.runs.prepare.items.selection import with_ids
from responses_app.runs.prepare.media import load_new
from responses_app.runs.prepare.prompt_context import NO_CONTEXT
from responses_app.runs.prepare.resolve import resolve_new, storable
from responses_app.store.content import conversations, history
from responses_app.store.content.conversations import ConversationLocked
from responses_app.store.content.history import ConversationContext, FindSkipped
from responses_app.store.content.images import ImageBytes


async def find(project: str, uid: str) -> Conversation:
    """Return the conversation `uid` of `project`. Raises NotFound."""
    row = await conversations.find(project, uid) if is_id(uid) else None
    if row is None:
        raise missing(uid)
    return row


async def find_previous(create_request: CreateRequest, find_skipped: FindSkipped | None = None) -> ConversationContext:
    """Return the context that the request continues: a conversation, another response, or nothing. Raises ApiError.

    With `find_skipped`, items that no prompt has space for are not read.
    """
    project, conversation, uid = create_request.project, create_request.conversation, create_request.previous_response_id
    if conversation is not None:
        row = await find(project, conversation)
        try:
            return await conversations.context(row, find_skipped(conversation) if find_skipped else None)
        except ConversationLocked as error:
            raise locked() from error
    if uid is None:
        return NO_CONTEXT
    context = await history.context(project, uid, find_skipped) if is_id(uid) else None
    if context is None:
        raise no_previous(uid, await _hint(project, uid))
    if not context.has_ended:
        raise InvalidRequest(
            f"Previous response with id '{uid}' is still in progress.",
            param="previous_response_id",
            code="previous_response_not_ready",
        )
    return context


async def _hint(project: str, uid: str) -> str:
    """Return a sentence about an id that is no id of a response, else an empty text."""
    kind, _, digits = uid.replace("-", "_", 1).partition("_")
    if kind == "resp" or not digits or not is_id(uid):
        return ""
    if kind == "conv":
        return " This is the id of a conversation: send it as 'conversation'."
    owner = await history.find_response(project, uid, f"resp_{digits}")
    if owner is not None and owner.stored:
        return f" Send the id of its response: '{owner.uid}'."
    if kind == "chatcmpl":
        return " It is not stored: a chat completion can be continued if its request had 'store': true."
    if owner is not None:
        return " Its response was not stored, so it cannot be continued."
    return " The id of a response begins with 'resp_'."


def locked() -> InvalidRequest:
    """Return the error for a conversation in which another response is in progress."""
    message = "Another process is currently operating on this conversation. Please retry in a few seconds."
    return InvalidRequest(message, param="conversation", code="conversation_locked")


def missing(uid: str) -> NotFound:
    """Return the error for a conversation that does not exist or belongs to another project."""
    return NotFound(f"Conversation with id '{uid}' not found.")


def no_previous(uid: str, hint: str = "") -> InvalidRequest:
    """Return the error for a `previous_response_id` that is not found."""
    message = f"Previous response with id '{uid}' not found.{hint}"
    return InvalidRequest(message, param="previous_response_id", code="previous_response_not_found")


async def prepare_items(project: str, items: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], ImageBytes]:
    """Prepare items that a client adds: ids, resolved references, fetched images. Return the items and the images.

    Raises NotFound, RateLimited, and InvalidRequest for an image or a grammar that cannot be read.
    """
    await check_grammars(project, (), items, "items")
    ids = [item["id"] for item in items if item["type"] == "item_reference" and is_id(item["id"])]
    whole = with_ids(items, await history.find(project, ids) if ids else {}, "items")
    media = await load_new(project, items, whole, "items")
    return whole, {} if media is None else storable(await resolve_new(project, media), whole)
