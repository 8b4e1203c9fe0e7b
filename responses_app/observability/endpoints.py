"""Endpoint of a request: the pattern of the route, so that a label has few values and no id."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.urls import Resolver404, resolve

from responses_app.observability.records import ObservedRequest
from responses_app.utils.url_prefix import local_path

# Endpoint of all paths without a route.
OTHER: Final = "other"
_GROUP: Final = re.compile(r"\(\?P<(\w+)>(?:[^()\\]|\\.)*\)\??|<(?:\w+:)?(\w+)>")
# Parts of a route that may be missing.
_OPTIONAL: Final = re.compile(r"\(\?:[^()]*\)\?|/\?")


@lru_cache(maxsize=1024)
def pattern(route: str) -> str:
    """Return the route of a URL configuration as a path with names in braces, without the prefix: `/v1/responses/{uid}`."""
    text = _OPTIONAL.sub("", _GROUP.sub(lambda match: f"{{{match[1] or match[2]}}}", route))
    path = f"/{text.rstrip('$').replace('^', '').lstrip('/')}".replace("\\.", ".")
    return local_path(path) or path


def endpoint(record: ObservedRequest) -> str:
    """Return the endpoint of a request."""
    match = getattr(record.request, "resolver_match", None)
    if match is not None:
        return pattern(match.route)
    if record.path.startswith(settings.STATIC_URL):
        return f"{settings.STATIC_URL}{{path}}"
    # The request was refused before it came to its view.
    return OTHER if record.request is not None else _endpoint_of_path(record.path)


@lru_cache(maxsize=1024)
def _endpoint_of_path(path: str) -> str:
    try:
        return pattern(resolve(path).route)
    except Resolver404:
        return OTHER
