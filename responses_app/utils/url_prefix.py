"""Prefix of all paths of this server in a Django project that includes the URLs below a path of its own."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest
from django.urls import NoReverseMatch, get_resolver


@cache
def url_prefix() -> str:
    """Return the prefix without a slash at the end, such as `/ai`; an empty string at the root."""
    try:
        return f"/{get_resolver().reverse('responses')}".removesuffix("/responses")
    except NoReverseMatch:
        # The check verbatim.E002 names the URLs that are missing.
        return ""


def local_path(path: str) -> str:
    """Return the path of a request without the prefix; an empty string for a path of another app."""
    prefix = url_prefix()
    return path[len(prefix) :] if path.startswith(f"{prefix}/") else ""


def api_url(request: HttpRequest) -> str:
    """Return the base URL of the API for clients, as the browser has reached the server: `https://host/v1`."""
    return request.build_absolute_uri(f"{url_prefix()}/v1")
