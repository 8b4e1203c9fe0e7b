"""GET /metrics: the metrics of all processes of this host, for Prometheus with a token."""

from __future__ import annotations

import asyncio
from secrets import compare_digest

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from responses_app.errors import NotFound, Unauthorized


async def scrape(request: HttpRequest) -> HttpResponseBase:
    """GET /metrics. Raises NotFound without RESPONSES_METRICS_TOKEN, Unauthorized for another token."""
    token: str = settings.RESPONSES_METRICS_TOKEN
    if not token:
        raise NotFound("Invalid URL (GET /metrics).")
    if not compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()):
        raise Unauthorized("The metrics need the header 'Authorization: Bearer TOKEN' with the token of the metrics.")
    # Imported only where metrics are on.
    from responses_app.observability import prometheus

    body = await asyncio.to_thread(prometheus.render, settings.RESPONSES_METRICS_DIR)
    return HttpResponse(body, content_type=prometheus.CONTENT_TYPE)
