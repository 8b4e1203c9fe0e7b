"""The Content-Security-Policy of every page for people, the admin's too: nothing runs, loads or is sent but files of this server."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from responses_app.web.middleware import response_middleware

# Pictures are those of the store, which a page may also carry or make by itself; nothing else comes from anywhere but here.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    return response


middleware = response_middleware(_with_policy)
