"""Answer to a form without a session: a page with the text of the form, of which nothing was stored."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme

from responses_app.store.db import release_connection

# Fields that no person has written.
NOT_TYPED: Final = frozenset({"csrfmiddlewaretoken", "action", "back", "end_old", "next", "query", "uid"})
MAX_SHOWN_CHARS: Final = 10_000


class EndedSession(MiddlewareMixin):
    """Middleware for a POST without a session: the redirect to the sign-in page would lose the form without a word."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return the page in place of a redirect to the sign-in page, by `login_required` or the admin."""
        if request.method != "POST" or response.status_code != 302 or "next=" not in response["Location"]:
            return response
        if urlsplit(response["Location"]).path not in {reverse("sign-in"), reverse("admin:login")}:
            return response
        # For async views this is in a thread in which Django ends no request.
        try:
            return _page(request)
        finally:
            release_connection()


def _page(request: HttpRequest) -> HttpResponse:
    fields = [
        (name.replace("_", " ").capitalize(), value[:MAX_SHOWN_CHARS])
        for name, values in request.POST.lists()
        for value in values
        if value.strip() and name not in NOT_TYPED and "password" not in name
    ]
    page = render(request, "web/session_ended.html", {"fields": fields, "form_url": _form_url(request)}, status=403)
    add_never_cache_headers(page)
    return page


def _form_url(request: HttpRequest) -> str:
    """Return the path of the page with the form, by the `Referer`; without one the path of the POST."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}):
        return request.get_full_path()
    parts = urlsplit(referer)
    return parts.path + (f"?{parts.query}" if parts.query else "")
