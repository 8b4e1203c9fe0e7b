"""Home page: the served models and an example request."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.runs import manager


async def home(request: HttpRequest) -> HttpResponse:
    """Render GET /: the base URL, the models with the health of the engines, and an example request to copy."""
    served = [(model.name, await model.engine.is_healthy(), model.family) for model in manager.current().served.values()]
    context = {
        "base_url": request.build_absolute_uri("/v1"),
        "served": served,
        "example": served[0][0] if served else "a-model",
    }
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(render)(request, "home.html", context)
