"""SQL of the first append of a log: rows of the response, the input items, the request and the lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from django.db import IntegrityError

from responses_app.models import CONVERSATION_LOCK, Direction, Item, Lease, Response, Status, StoredRequest
from responses_app.store.content import images
from responses_app.store.log.records import Append, ConversationLocked, RequestRecord, ResponseLog
from responses_app.store.log.token_ids import encode_tokens


def open_logs(appends: Sequence[Append]) -> None:
    """Insert the responses of `appends` with input items, requests and leases. Raises ConversationLocked."""
    if not appends:
        return
    for append in appends:
        # In a retry the row may have the primary key of a rolled back insert.
        append.log.row.pk = None
    try:
        Response.objects.bulk_create([append.log.row for append in appends])
    except IntegrityError as error:
        if CONVERSATION_LOCK in str(error):
            raise ConversationLocked(str(error)) from error
        raise
    _insert_leases(append.log for append in appends)
    rows = [(append, build_items(append.log.row, append.log.input, Direction.INPUT)) for append in appends]
    Item.objects.bulk_create([item for _, items in rows for item in items])
    for append, items in rows:
        append.log.input_keys = [item.pk for item in items]
        if append.log.images:
            images.insert(items, append.log.images)


def _insert_leases(logs: Iterable[ResponseLog]) -> None:
    """Insert the stored requests and the leases."""
    requests = [(log, log.request) for log in logs if log.request is not None]
    StoredRequest.objects.bulk_create(
        StoredRequest(
            response=log.row, create_request=request.create_request, prompt_tokens=encode_tokens(request.prompt_tokens)
        )
        for log, request in requests
    )
    Lease.objects.bulk_create([_lease(log, request) for log, request in requests])


def _lease(log: ResponseLog, request: RequestRecord) -> Lease:
    waiting = log.worker is None
    return Lease(
        response=log.row,
        worker=log.worker,
        model=request.model,
        waiting=waiting,
        priority=request.priority,
        secrets=request.secrets,
    )


def start_queued(keys: Sequence[int]) -> None:
    """Mark queued responses as running."""
    if keys:
        Response.objects.filter(pk__in=keys).update(status=Status.IN_PROGRESS)
        Lease.objects.filter(pk__in=keys).update(waiting=False)


def build_items(row: Response, bodies: Iterable[Mapping[str, Any]], direction: Direction) -> list[Item]:
    """Build the rows of items, without saving."""
    return [
        Item(
            uid=body["id"],
            response=row,
            project=row.project,
            direction=direction,
            type=body["type"],
            body=orjson.dumps(body).decode(),
        )
        for body in bodies
    ]
