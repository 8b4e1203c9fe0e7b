"""The first page: what is served here, and how to ask it something."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.runs import manager


async def home(request: HttpRequest) -> HttpResponse:
    """GET /: the base URL, the models and whether their engines are alive, and a call to copy."""
    served = [(one.name, await one.engine.is_healthy()) for one in manager.current().served.values()]
    context = {
        "base_url": request.build_absolute_uri("/v1"),
        "served": served,
        "example": served[0][0] if served else "a-model",
    }
    # Who has signed in is looked up while the page is rendered, which must not happen on the loop.
    return await sync_to_async(render)(request, "home.html", context)
