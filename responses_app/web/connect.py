"""Page of the configurations of clients."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from responses_app.access import model_access
from responses_app.connect.agents.table import AGENTS
from responses_app.connect.connection import Agent, Connection
from responses_app.connect.served import model_facts
from responses_app.installation.data_dir import PROGRAM
from responses_app.runs import manager
from responses_app.utils.url_prefix import api_url

KEY = "YOUR_API_KEY"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration of a client as the page shows it: files by path, and environment variables with values for a shell."""

    agent: Agent
    files: list[tuple[str, str]]
    variables: Mapping[str, str]
    command: str
    start: str


@never_cache
async def show(request: HttpRequest) -> HttpResponse:
    """Render GET /connect: for each client the files with the address and the facts of a model; `?model=` names the model.

    The menu has the models that the person may use.
    """
    served = manager.current().served
    usable = await sync_to_async(lambda: model_access.usable_by_person(request.user))()
    name = request.GET.get("model") or next(iter(usable), None)
    context: dict[str, Any] = {"section": "keys", "is_served": bool(served)}
    if name is not None:
        if name not in served:
            raise Http404(f"no model {name!r}")
        connection = Connection(api_url(request), KEY, model_facts(name, served[name]))
        context |= {"models": usable, "is_usable": name in usable, "facts": connection.model, "key": KEY}
        context["configurations"] = list(_configurations(connection))
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(render)(request, "web/connect.html", context)


def _configurations(connection: Connection) -> Iterator[Configuration]:
    model = connection.model.name
    for name, agent in AGENTS.items():
        files = [(str(file.path), file.edit("").rstrip()) for file in agent.files(connection, Path("~"), {})]
        command = f"{PROGRAM} connect {name} --url {connection.root} --model {model}{' --write' if files else ''}"
        variables = {variable: shlex.quote(value) for variable, value in agent.variables(connection).items()}
        yield Configuration(agent, files, variables, command, agent.start.replace("MODEL", model))
