"""Home page: the served models and an example request."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.engines.pool.engine import EnginePool
from responses_app.engines.pool.member import MemberStatus
from responses_app.runs import manager
from responses_app.runs.models import ServedModel
from responses_app.web.models import real_model_command, state


async def home(request: HttpRequest) -> HttpResponse:
    """Render GET /: the base URL, the models with the health of the engines, and an example request to copy."""
    models = list(manager.current().served.values())
    served = [(model.name, await state(model), model.family, _engines(model)) for model in models]
    context = {
        "base_url": request.build_absolute_uri("/v1"),
        "served": served,
        "real_model_command": real_model_command(models),
        "example": served[0][0] if served else "a-model",
    }
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(render)(request, "home.html", context)


def _engines(model: ServedModel) -> list[tuple[MemberStatus, int]]:
    """Return each URL of a model with its share of the requests in percent; nothing for a model with a single engine."""
    statuses = model.engine.statuses if isinstance(model.engine, EnginePool) else []
    total = sum(status.requests for status in statuses) or 1
    return [(status, round(100 * status.requests / total)) for status in statuses]
