"""Answers to a form whose session has ended or is a newer one: pages with the text of the form, of which nothing was stored."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
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
        if urlsplit(response["Location"]).path not in {reverse("sign-in"), reverse("admin:login")} - {request.path}:
            return response
        # For async views this is in a thread in which Django ends no request.
        try:
            return _page(request)
        finally:
            release_connection()


def expired_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a refused CSRF token. A form from before a sign-in in another tab is shown with a button to send it."""
    # Django has compared the `Origin`, which a page of another site cannot choose.
    is_old = "Origin" in request.headers and reason.startswith("CSRF token from POST")
    # For async views this is in a thread in which Django ends no request.
    try:
        if is_old and request.path == reverse("sign-in"):
            if not request.user.is_authenticated:
                messages.warning(request, "This page was out of date. Sign in now.")
            return redirect(request.get_full_path())
        has_password = any("password" in name for name in request.POST)
        can_repeat = is_old and request.user.is_authenticated and not request.FILES and not has_password
        context = {
            "can_repeat": can_repeat,
            "fields": _typed_fields(request) if is_old else [],
            "hidden": [
                (name, value) for name, values in request.POST.lists() for value in values if name != "csrfmiddlewaretoken"
            ],
            "form_url": _form_url(request),
        }
        page = render(request, "403_csrf.html", context, status=403)
        add_never_cache_headers(page)
        return page
    finally:
        release_connection()


def _page(request: HttpRequest) -> HttpResponse:
    context = {"fields": _typed_fields(request), "form_url": _form_url(request)}
    page = render(request, "web/session_ended.html", context, status=403)
    add_never_cache_headers(page)
    return page


def _typed_fields(request: HttpRequest) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " ").capitalize(), value[:MAX_SHOWN_CHARS])
        for name, values in request.POST.lists()
        for value in values
        if value.strip() and name not in NOT_TYPED and "password" not in name
    ]


def _form_url(request: HttpRequest) -> str:
    """Return the path of the page with the form, by the `Referer`; without one the path of the POST."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}):
        return request.get_full_path()
    parts = urlsplit(referer)
    return parts.path + (f"?{parts.query}" if parts.query else "")
