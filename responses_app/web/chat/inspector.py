"""Inspector of an answer in the chat: the properties of its response as an HTML fragment."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.web.response.detail import get_response
from responses_app.web.response.properties import request_properties
from responses_app.web.responses.rows import ResponseStats


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /chat/ID/inspector."""
    row = get_response(request, uid)
    return render(
        request, "web/chat_inspector.html", {"row": row, "stats": ResponseStats(row), "properties": request_properties(row)}
    )
