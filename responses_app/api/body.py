"""The body of a request, read beside the loop if it is long: what takes seconds must not make every stream of the process wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from django.http import HttpRequest

from responses_app.api import profile, requests

T = TypeVar("T")
# Some milliseconds' worth.
LONG = 16 * 1024


async def read(request: HttpRequest, make: Callable[[dict[str, Any]], T], empty: bytes = b"") -> T:
    """What `make` makes of the JSON object; of `empty` where there is no body. Raises Invalid."""
    body = request.body or empty

    def made() -> T:
        return make(profile.read(request, requests.parse(body)))

    return await beside(len(body), made)


async def beside(size: int, make: Callable[..., T], *args: Any) -> T:
    """What `make` makes of something that is so many bytes long, in a thread if these are many."""
    return await asyncio.to_thread(make, *args) if size > LONG else make(*args)
