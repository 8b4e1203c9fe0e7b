"""Live event stream of a running response for the response page.

The stream ends within a minute when the user signs out, becomes inactive or leaves the project.
"""

from __future__ import annotations

from functools import partial

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from responses_app.access.permissions import has_role
from responses_app.models import LogForm, Role
from responses_app.runs import manager
from responses_app.web.response.detail import get_response, number
from responses_app.wire.allowed_stream import while_allowed
from responses_app.wire.event_stream import EventStream
from responses_app.wire.sse import EventEncoder, EventFormat


@login_required
@require_GET
async def stream(request: HttpRequest, uid: str) -> HttpResponseBase:
    """Stream GET /responses/ID/live?after=N: the same SSE stream as of the API, for a signed-in user."""
    row = await sync_to_async(get_response)(request, uid)
    if row.log_form == LogForm.WITHOUT_DELTAS:
        return HttpResponse(status=204)
    subscribe = partial(manager.current().subscribe, row, number(request, "after"))
    is_allowed = partial(sync_to_async(may_still_read), request, row.project)
    return EventStream(request, while_allowed(subscribe, is_allowed), EventEncoder(EventFormat()))


def may_still_read(request: HttpRequest, project: str) -> bool:
    """Return whether the session of `request` is still that of an active user with a role in `project`."""
    request.session = type(request.session)(request.session.session_key)
    return has_role(get_user(request), project, Role.VIEWER)
