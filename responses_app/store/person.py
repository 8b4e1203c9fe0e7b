"""Data of a person, whom the field `safety_identifier` of requests names: search, export and erasure.

The identifier is in the stored request of each response, without an index: the search reads all stored requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from django.db.models import QuerySet

from responses_app.models import Conversation, ConversationItem, Direction, Item, Response, StoredRequest, WebhookDelivery
from responses_app.store.content import chat_threads
from responses_app.store.content.erasure import Counts, cancel_running, chunks, count_rows, erase_responses
from responses_app.store.log import reader

FIELD = "safety_identifier"


def responses_of(identifier: str) -> QuerySet[Response]:
    """Return the responses whose requests have the identifier, of all projects."""
    text = orjson.dumps({FIELD: identifier})[1:-1].decode()
    candidates = StoredRequest.objects.filter(create_request__contains=text).values_list("response_id", "create_request")
    # The text may be part of another field, such as the metadata.
    keys = [pk for pk, request in candidates.iterator() if orjson.loads(request).get("echo", {}).get(FIELD) == identifier]
    return Response.objects.filter(pk__in=keys)


def count_person(responses: QuerySet[Response]) -> Counts:
    """Count the rows of the responses of a person, by kind."""
    return count_rows(responses, Item.objects.filter(response__in=responses), Conversation.objects.none())


def export_person(responses: QuerySet[Response]) -> Iterator[bytes]:
    """Yield a JSON object for each response that has ended: project, response and own input items, the oldest first."""
    for pk, project in list(responses.order_by("pk").values_list("pk", "project")):
        row = reader.with_last_event(Response.objects.filter(pk=pk), pk).only("pk").first()
        snapshot = None if row is None else reader.terminal_snapshot(row)
        if snapshot is not None:
            bodies = Item.objects.filter(response=pk, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
            line: dict[str, Any] = {"project": project, "response": orjson.Fragment(snapshot)}
            yield orjson.dumps({**line, "input_items": [orjson.Fragment(body) for body in bodies]})


def erase_person(responses: QuerySet[Response]) -> Iterator[tuple[str, int]]:
    """Erase the responses of a person, their items, also in conversations, and deliveries of webhooks. Yield kind and size.

    Items that a response of another person continues stay.
    """
    yield from cancel_running(responses)
    # The newest first, so that the items of each are deleted with it.
    uids = dict(responses.order_by("-pk").values_list("pk", "uid"))
    for chunk in chunks(list(uids)):
        # The responses last: a command that was killed finds the person by these.
        deleted, _ = WebhookDelivery.objects.filter(response_uid__in=[uids[pk] for pk in chunk]).delete()
        yield "webhook deliveries", deleted
        ConversationItem.objects.filter(item__response__in=chunk).delete()
        yield from erase_responses(Response.objects.filter(pk__in=chunk))
    yield from chat_threads.prune()
