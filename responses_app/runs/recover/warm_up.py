"""Warm-up of a process: what a first request loads, and a first prompt of each model, while no client waits."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Mapping

from django.conf import settings
from django.urls import resolve

from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.input_tokens import count_input_tokens
from responses_app.runs.models import ServedModel
from responses_app.tools.mcp.sessions import import_session_type
from responses_app.utils.url_prefix import url_prefix

logger = logging.getLogger("responses.runs")

# Seconds that the start of a process waits for the warm-up; a health check then reports that it goes on.
LIMIT_S = 10.0
GREETING = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}


class WarmUp:
    """Warm-up of the views, the client library for MCP servers, and the served models.

    The engine generates nothing, and nothing is read or stored.
    """

    def __init__(self, served: Mapping[str, ServedModel]) -> None:
        self.is_done = False
        self._served = served
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the warm-up, unless it runs or is done; a warm-up that failed starts again."""
        if not self.is_done and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._run(), name="warm-up", context=contextvars.Context())

    async def finish(self) -> None:
        """Start the warm-up, and wait up to LIMIT_S seconds for the end."""
        self.start()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=LIMIT_S)

    def stop(self) -> None:
        """Stop the warm-up, if it runs."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            # Imports all views, which takes longer than everything else in a first request.
            await asyncio.to_thread(resolve, f"{url_prefix()}/")
            # Objects that are made before the end of the start are never looked at by the garbage collector.
            if settings.RESPONSES_MCP_SERVERS:
                await import_session_type()
            for name, served in self._served.items():
                request = CreateRequest("", None, name, [GREETING], store=False)
                await count_input_tokens(new_id("resp_"), request, served, None)
        except Exception:  # A model may bring its own code, which may raise anything.
            logger.exception("the first prompt of a model failed")
        else:
            self.is_done = True
