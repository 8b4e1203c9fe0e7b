"""Views of models."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import tool_access
from responses_app.access.model_access import available, can_use, find, usable
from responses_app.api import query
from responses_app.api.http import json_response
from responses_app.api_formats.messages.message import VERSION_HEADER
from responses_app.api_formats.messages.models import model_info, model_list
from responses_app.connect.codex_models import codex_models
from responses_app.connect.served import model_facts
from responses_app.errors import Forbidden, NotFound
from responses_app.models import ApiKey
from responses_app.runs.models import ServedModel
from responses_app.schemas.parsing.tools import active_types
from responses_app.tools.registry import is_run_by_server
from responses_app.validation.errors import shorten


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/models. With `client_version`, which Codex sends, `models` has the models in the form that Codex reads.

    With the header `anthropic-version` the list has the form of Anthropic's API.
    """
    models = usable(key)
    if VERSION_HEADER in request.headers:
        limit = query.integer(request, "limit", 20, least=1, most=1000)
        ends = {"after": query.text(request, "after_id"), "before": query.text(request, "before_id")}
        return json_response(model_list(models, limit, **ends))
    listed: dict[str, object] = {"object": "list", "data": [_shape(key, name, served) for name, served in models.items()]}
    if request.GET.get("client_version"):
        listed["models"] = codex_models([model_facts(name, served) for name, served in models.items()])
    return json_response(listed)


async def show(request: HttpRequest, key: ApiKey, name: str) -> HttpResponseBase:
    """GET /v1/models/{name}."""
    served = _checked_model(key, name)
    if VERSION_HEADER in request.headers:
        return json_response(model_info(name, served))
    return json_response(_shape(key, name, served))


async def delete(request: HttpRequest, key: ApiKey, name: str) -> HttpResponseBase:
    """DELETE /v1/models/{name}: always rejected, as the server owns all models. Raises NotFound, Forbidden."""
    del request
    _checked_model(key, name)
    raise Forbidden(
        f"You have insufficient permissions to delete the model '{shorten(name)}': models that you do not own cannot be deleted.",
        param="model",
    )


def _checked_model(key: ApiKey, name: str) -> ServedModel:
    """Return the model of this name. Raises NotFound, also for a model that the key may not use."""
    served = find(name)
    if served is None or not can_use(key, served.name):
        message = f"The model '{shorten(name)}' does not exist. {available(key)}"
        raise NotFound(message, param="model", code="model_not_found")
    return served


def _shape(key: ApiKey, name: str, served: ServedModel) -> dict[str, object]:
    shape: dict[str, object] = {"id": name, "object": "model", "created": served.created, "owned_by": "verbatim"}
    if served.parent:
        shape["parent"] = served.parent
    return {
        **shape,
        **model_facts(name, served).as_json(),
        "sampling_defaults": served.defaults.as_json(),
        "family": served.family.as_json() if served.family else None,
        "tools": [kind for kind in active_types() if tool_access.can_use_type(key, kind)],
        "mcp_servers": _mcp_servers(key),
    }


def _mcp_servers(key: ApiKey) -> list[dict[str, object]]:
    """Return the operator's MCP servers that the key may use, as fields of a tool of a request."""
    if not is_run_by_server("mcp"):
        return []
    servers: Mapping[str, Mapping[str, object]] = settings.RESPONSES_MCP_SERVERS
    return [
        {"server_label": label, "connector_id": one.get("connector_id"), "server_description": one.get("description")}
        for label, one in servers.items()
        if tool_access.can_use(key, f"{tool_access.MCP}:{label}")
    ]
