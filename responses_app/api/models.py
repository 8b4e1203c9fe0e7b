"""The models that can be asked for, and whether the server is well."""

from __future__ import annotations

import asyncio

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from responses_app.api.door import answer
from responses_app.api.limits import may
from responses_app.api.problems import shorten
from responses_app.errors import NotFound, Unavailable
from responses_app.models import ApiKey
from responses_app.runs import hub
from responses_app.runs.served import Served, named

ALIVE_LIMIT = 5.0


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/models."""
    del request
    now = hub.current()
    names = dict(now.served)
    # A pattern is no name that a client could choose from a list.
    names |= {alias: now.served[model] for alias, model in now.aliases.items() if "*" not in alias}
    mine = {name: one for name, one in names.items() if may(key, one.name)}
    return answer({"object": "list", "data": [_shape(name, one) for name, one in mine.items()]})


async def show(request: HttpRequest, key: ApiKey, name: str) -> HttpResponseBase:
    """GET /v1/models/{name}."""
    del request
    now = hub.current()
    served = named(name, now.served, now.aliases)
    if served is None or not may(key, served.name):
        raise NotFound(f"The model '{shorten(name)}' does not exist", param="model", code="model_not_found")
    return answer(_shape(name, served))


async def health(request: HttpRequest) -> HttpResponseBase:
    """GET /health: 200 and nothing while every engine is alive. Raises Unavailable."""
    del request
    served = hub.current().served.values()
    try:
        states = await asyncio.wait_for(asyncio.gather(*(one.engine.alive() for one in served)), ALIVE_LIMIT)
    except TimeoutError:
        states = [False]
    if not all(states):
        raise Unavailable("An engine does not answer.")
    return HttpResponse()


def _shape(name: str, served: Served) -> dict[str, object]:
    return {"id": name, "object": "model", "created": served.created, "owned_by": "verbatim"}
