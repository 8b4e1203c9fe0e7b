"""View of `/mcp`: Streamable HTTP without sessions, with the API key of the project. Off unless RESPONSES_LOG_MCP is set."""

from __future__ import annotations

import asyncio
from importlib import import_module

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import re_path

from responses_app.api.http import shared_view
from responses_app.errors import NotFound
from responses_app.models import ApiKey


async def post(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /mcp: answer a message of the protocol."""
    if not settings.RESPONSES_LOG_MCP:
        raise NotFound("The MCP server of the log is off. The operator turns it on with RESPONSES_LOG_MCP=1.")
    # The SDK is imported with the first message, which takes half a second.
    transport = await asyncio.to_thread(import_module, "responses_app.mcp_server.transport")
    response: HttpResponseBase = await transport.answer(request, key.project)
    return response


urlpatterns = [re_path(r"^mcp/?$", shared_view(POST=post))]
