"""List objects of the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson
from asgiref.sync import sync_to_async
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.api import query
from responses_app.api.http import json_response
from responses_app.errors import NotFound
from responses_app.models import ApiKey
from responses_app.runs.ids import is_id
from responses_app.store.paging import read_page
from responses_app.wire.request_body import off_loop

Row = TypeVar("Row", bound=Model)


def list_object(bodies: Iterable[bytes], first: str | None, last: str | None, *, more: bool) -> HttpResponseBase:
    """Return a list object of encoded items; `first` and `last` are the ids of the first and last item."""
    ends = {"first_id": first, "last_id": last, "has_more": more}
    return json_response(b'{"object":"list","data":[' + b",".join(bodies) + b"]," + orjson.dumps(ends)[1:])


async def encode_list(
    key: ApiKey, size: int, bodies: Iterable[bytes], first: str | None, last: str | None, *, more: bool
) -> HttpResponseBase:
    """Return a list object of items that are encoded while `bodies` is read, in a thread if their texts are long (`size`).

    Raises RateLimited.
    """
    return await off_loop(key, size, partial(list_object, bodies, first, last, more=more))


async def page_of_rows(
    request: HttpRequest, rows: QuerySet[Row], shape: Callable[[Row], Mapping[str, Any]]
) -> HttpResponseBase:
    """Return the page of `rows` that the query asks for: `limit`, `order`, `after`. `rows` have a `uid`. Raises ApiError."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    after = query.cursor(request)
    page = None
    if after is None or is_id(after):
        page = await sync_to_async(read_page)(rows, limit=limit, newest_first=newest_first, after=after)
    if page is None:
        raise NotFound(f"No object found with id '{after}'.", param="after")
    shown: Sequence[Any] = page.rows
    ends = (shown[0].uid, shown[-1].uid) if shown else (None, None)
    return list_object((orjson.dumps(shape(row)) for row in shown), *ends, more=page.more)
