"""The body of a request, read beside the loop if it is long: what takes seconds must not make every stream of the process wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.http import HttpRequest

from responses_app.models import ApiKey
from responses_app.runs.prepare import long_work
from responses_app.schemas import create_response
from responses_app.wire import profiles

T = TypeVar("T")
# Some milliseconds' worth.
LONG = 16 * 1024


async def parse_body(request: HttpRequest, key: ApiKey, make: Callable[[dict[str, Any]], T], empty: bytes = b"") -> T:
    """What `make` makes of the JSON object; of `empty` where there is no body. Raises Invalid, Busy."""
    body = request.body or empty

    def made() -> T:
        return make(profiles.normalize_request(request, create_response.parse(body)))

    return await off_loop(key, len(body), made)


async def off_loop(key: ApiKey, size: int, make: Callable[..., T], *args: Any) -> T:
    """What `make` makes of something that is so many bytes long, in a thread if these are many. Raises Busy."""
    if size <= LONG:
        return make(*args)
    return await long_work.run(key.project, size > long_work.LONG_TEXT, partial(make, *args))
