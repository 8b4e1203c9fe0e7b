"""A running response, live: its events from the beginning or behind a number, whichever process makes them."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from responses_app.api.responses import EventStream
from responses_app.api.sse import Form
from responses_app.models import Detail
from responses_app.runs import hub
from responses_app.web.found import find, number


@login_required
@require_GET
async def stream(request: HttpRequest, uid: str) -> HttpResponseBase:
    """GET /responses/ID/live?after=N: the stream that any client gets, for a person who has signed in."""
    row = await sync_to_async(find)(request, uid)
    if row.detail == Detail.OUTLINE:
        return HttpResponse(status=204)
    return EventStream(hub.current().listen(row.uid, row.pk, number(request, "after")), Form())
