"""A page of items as JSON."""

from __future__ import annotations

import orjson
from django.http.response import HttpResponseBase

from responses_app.api.door import answer
from responses_app.store.inputs import Page


def shown(page: Page) -> HttpResponseBase:
    """The list object; its items are the stored bytes."""
    data = b",".join(body.encode() for _, body in page.rows)
    ends = {"first_id": page.first, "last_id": page.last, "has_more": page.more}
    return answer(b'{"object":"list","data":[' + data + b"]," + orjson.dumps(ends)[1:])
