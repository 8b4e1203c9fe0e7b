"""ASGI lifespan: other ASGI servers start and stop the run manager with their process. `bin/serve` does so without it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from responses_app.observability import events
from responses_app.observability.start import start_observing
from responses_app.runs import manager

logger = logging.getLogger("responses.asgi")

# Seconds that running responses may take at the end, as the default of `--drain`. Then another process continues them.
DRAIN_S: Final = 10.0


async def lifespan(
    scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Start the engines at the start of the process; end or hand over the responses at the end."""
    del scope
    await receive()
    try:
        start_observing(manager.current().served)
        await manager.current().start()
        if not manager.current().served:
            logger.warning("no model is served: set RESPONSES_MODELS (name=engine-url)")
    except Exception as error:
        logger.exception("no start")
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await manager.current().drain(DRAIN_S)
    await manager.current().close()
    events.close()
    await send({"type": "lifespan.shutdown.complete"})
