"""Refusals of requests by their header: the API key is known from the cache, or the request has no valid key."""

from __future__ import annotations

from responses_app.access.api_keys import cached_key
from responses_app.errors import ApiError, Unauthorized
from responses_app.store.refused_requests import RequestPlace, buffer


def note_refusal(refusal: ApiError, request_id: str, line: tuple[str, str], authorization: str, address: str) -> None:
    """Note a refused request. `line` is the method and the path, `authorization` the header. Nothing is read or written."""
    method, path = line
    try:
        key = cached_key(authorization)
    except Unauthorized:
        key = None
    buffer.note(refusal, RequestPlace(request_id, method, path, key, address))
