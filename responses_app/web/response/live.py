"""Live event stream of a running response for the response page."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from responses_app.models import LogForm
from responses_app.runs import manager
from responses_app.web.response.detail import get_response, number
from responses_app.wire.event_stream import EventStream
from responses_app.wire.sse import EventEncoder, EventFormat


@login_required
@require_GET
async def stream(request: HttpRequest, uid: str) -> HttpResponseBase:
    """Stream GET /responses/ID/live?after=N: the same SSE stream as of the API, for a signed-in user."""
    row = await sync_to_async(get_response)(request, uid)
    if row.log_form == LogForm.WITHOUT_DELTAS:
        return HttpResponse(status=204)
    after = number(request, "after")
    return EventStream(request, lambda push: manager.current().subscribe(row, after, push), EventEncoder(EventFormat()))
