"""List objects of the API."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from django.http.response import HttpResponseBase

from responses_app.api.http import json_response


def list_object(bodies: Iterable[bytes], first: str | None, last: str | None, *, more: bool) -> HttpResponseBase:
    """Return a list object of encoded items; `first` and `last` are the ids of the first and last item."""
    ends = {"first_id": first, "last_id": last, "has_more": more}
    return json_response(b'{"object":"list","data":[' + b",".join(bodies) + b"]," + orjson.dumps(ends)[1:])
