"""Home page: the overview of the responses for signed-in users, else the served models and an example request."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from responses_app.engines.pool.engine import EnginePool
from responses_app.engines.pool.member import MemberStatus
from responses_app.runs import manager
from responses_app.runs.models import ServedModel
from responses_app.utils.url_prefix import api_url
from responses_app.web.delivery.replica_pages import reads_replica
from responses_app.web.models import real_model_command, state
from responses_app.web.overview.page import ServedEngine, overview_context


@never_cache
async def home(request: HttpRequest) -> HttpResponse:
    """Render GET /: the base URL, the models with the health of the engines, an example request to copy, and the overview."""
    models = list(manager.current().served.values())
    states = await asyncio.gather(*(state(model) for model in models))
    context = {
        "base_url": api_url(request),
        "served": [
            ServedEngine(model.name, one, model.family, _members(model)) for model, one in zip(models, states, strict=True)
        ],
        "real_model_command": real_model_command(models),
        "example": models[0].name if models else "a-model",
    }
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(_render)(request, context)


def _render(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    if not request.user.is_authenticated:
        return render(request, "home.html", context)
    return _overview(request, context)


@reads_replica
def _overview(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    return render(request, "web/overview.html", {**context, **overview_context(request, context["served"])})


def _members(model: ServedModel) -> list[tuple[MemberStatus, int]]:
    """Return each URL of a model with its share of the requests in percent; nothing for a model with a single engine."""
    statuses = model.engine.statuses if isinstance(model.engine, EnginePool) else []
    total = sum(status.requests for status in statuses) or 1
    return [(status, round(100 * status.requests / total)) for status in statuses]
