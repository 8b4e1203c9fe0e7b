"""Content-Security-Policy of every page, also of the admin: only files of this server run, load or receive data."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from responses_app.web.delivery.middleware import response_middleware

# Images may also be `data:` and `blob:` URLs, for attachments and stored images. Everything else comes from this server only.
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
