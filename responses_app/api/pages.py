"""Pages of a list as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import orjson
from django.http.response import HttpResponseBase

from responses_app.api.door import answer
from responses_app.api.shown import pictured
from responses_app.store.inputs import Page


def listed(bodies: Iterable[bytes], first: str | None, last: str | None, *, more: bool) -> HttpResponseBase:
    """The list object of these bodies, which are taken as they are; `first` and `last` are the ids of the ends of this page."""
    ends = {"first_id": first, "last_id": last, "has_more": more}
    return answer(b'{"object":"list","data":[' + b",".join(bodies) + b"]," + orjson.dumps(ends)[1:])


def shown(page: Page, include: Collection[str]) -> HttpResponseBase:
    """A page of items, in their stored bytes but for what `include` would have to ask for."""
    return listed((pictured(body, include) for _, body in page.rows), page.first, page.last, more=page.more)
