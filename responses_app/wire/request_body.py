"""Request bodies; long bodies are parsed in a thread, so that the streams of the process do not wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.http import HttpRequest

from responses_app.models import ApiKey
from responses_app.runs.prepare import long_work
from responses_app.validation import json_body
from responses_app.wire import profiles

T = TypeVar("T")
# Bytes that take some milliseconds to parse.
MAX_LOOP_BYTES = 16 * 1024


async def parse_body(request: HttpRequest, key: ApiKey, make: Callable[[dict[str, Any]], T], empty: bytes = b"") -> T:
    """Parse the body, or `empty` without a body, and pass the object to `make`. Raises InvalidRequest, RateLimited."""
    body = request.body or empty

    def made() -> T:
        return make(profiles.normalize_request(request, json_body.parse(body)))

    return await off_loop(key, len(body), made)


async def off_loop(key: ApiKey, size: int, make: Callable[..., T], *args: Any) -> T:
    """Call `make(*args)`, in a thread if the input has many bytes (`size`). Raises RateLimited."""
    if size <= MAX_LOOP_BYTES:
        return make(*args)
    return await long_work.run(key.project, size > long_work.LONG_TEXT, partial(make, *args))
