"""Pages of a list as JSON."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from django.http.response import HttpResponseBase

from responses_app.api.http import json_response


def list_object(bodies: Iterable[bytes], first: str | None, last: str | None, *, more: bool) -> HttpResponseBase:
    """The list object of these bodies, which are taken as they are; `first` and `last` are the ids of the ends of this page."""
    ends = {"first_id": first, "last_id": last, "has_more": more}
    return json_response(b'{"object":"list","data":[' + b",".join(bodies) + b"]," + orjson.dumps(ends)[1:])
