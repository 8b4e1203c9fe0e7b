"""Inspector of an answer in the chat: the properties of its response as an HTML fragment."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.web.private import private
from responses_app.web.response.detail import get_response
from responses_app.web.response.properties import request_properties
from responses_app.web.responses.rows import ResponseStats


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /chat/ID/inspector."""
    row = get_response(request, uid)
    return render(
        request, "web/chat_inspector.html", {"row": row, "stats": ResponseStats(row), "properties": request_properties(row)}
    )
