"""Search by id of a response, request, conversation or item, and by the ids of completions and messages in other API formats."""

from __future__ import annotations

import re
from typing import Final

from django.db.models import QuerySet
from django.db.models.functions import Left

from responses_app.api_formats.chat_completions.completion import PREFIX as COMPLETION_PREFIX
from responses_app.api_formats.chat_completions.completion import RESPONSE_PREFIX
from responses_app.api_formats.messages.message import PREFIX as MESSAGE_PREFIX
from responses_app.models import Item, Response
from responses_app.models.responses import INDEXED_ID_CHARS

ID: Final = re.compile(r"([a-z]{2,16})_([A-Za-z0-9_.:-]{1,110})")
# Characters after the prefix that make the beginning of an id searchable. Ids begin with the time; 8 characters select about a minute.
MIN_LENGTH: Final = 8
FIELDS: Final = {"resp": "uid", "req": "request_id", "conv": "conversation__uid"}


def search_by_id(rows: QuerySet[Response], text: str) -> QuerySet[Response] | None:
    """Return the responses matching an id or the beginning of an id, or None without a match."""
    if text.startswith(COMPLETION_PREFIX):
        return _search(rows, response_id(text))
    matching = _search(rows, text)
    # Messages have ids with the prefix of items.
    return _search(rows, response_id(text)) if matching is None and text.startswith(MESSAGE_PREFIX) else matching


def response_id(uid: str) -> str:
    """Return the id of the response that a client knows as a completion or a message with the id `uid`."""
    for prefix in (COMPLETION_PREFIX, MESSAGE_PREFIX):
        if uid.startswith(prefix):
            return RESPONSE_PREFIX + uid.removeprefix(prefix)
    return uid


def _search(rows: QuerySet[Response], text: str) -> QuerySet[Response] | None:
    match = ID.fullmatch(text)
    if match is None:
        return None
    lookup = "startswith" if len(match[2]) >= MIN_LENGTH else "exact"
    field = FIELDS.get(match[1])
    if field is None:
        items = Item.objects.filter(**{f"uid__{lookup}": text}).order_by()
        matching = rows.filter(pk__in=items.values("response_id"))
    else:
        matching = rows.filter(**{f"{field}__{lookup}": text})
    if field == "request_id":
        matching = matching.alias(indexed_id=Left("request_id", INDEXED_ID_CHARS))
        matching = matching.filter(indexed_id__startswith=text[:INDEXED_ID_CHARS])
    return matching if matching.order_by().exists() else None
