"""Views of signed-in users."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from django.contrib.auth.decorators import login_required
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

View = TypeVar("View", bound=Callable[..., HttpResponseBase | Awaitable[HttpResponseBase]])


def private(*methods: str) -> Callable[[View], View]:
    """Require a sign-in and one of `methods`, and let no browser or proxy store the response."""

    def decorate(view: View) -> View:
        return never_cache(login_required(require_http_methods(methods)(view)))

    return decorate
