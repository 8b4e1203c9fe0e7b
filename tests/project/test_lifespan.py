"""Start and stop of the run manager by the lifespan messages of an ASGI server."""

from __future__ import annotations

import asyncio
from typing import Any

from django.test import TransactionTestCase

from project.asgi import application
from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import HARMONY


class Unavailable(ReplayEngine):
    """An engine that does not start."""

    async def start(self) -> None:
        raise EngineUnavailable("no engine")


class LifespanTest(TransactionTestCase):
    """The messages that the server gets, and the state of the manager."""

    async def exchange(self, engine: ReplayEngine | None, *received: str) -> tuple[RunManager, list[dict[str, Any]]]:
        """Run the lifespan with a manager of `engine`, None for no model. The lifespan gets the messages `received`."""
        served = {"m": ServedModel("m", engine, "", {}, dialect=HARMONY)} if engine else {}
        hub, sent = RunManager(served), list[dict[str, Any]]()
        incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for kind in received:
            incoming.put_nowait({"type": kind})

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        manager.set_current(hub)
        try:
            await application({"type": "lifespan"}, incoming.get, send)
        finally:
            manager.set_current(None)
        return hub, sent

    async def test_manager_starts_and_stops_with_the_process(self) -> None:
        engine = ReplayEngine()
        hub, sent = await self.exchange(engine, "lifespan.startup", "lifespan.shutdown")
        self.assertEqual([message["type"] for message in sent], ["lifespan.startup.complete", "lifespan.shutdown.complete"])
        self.assertTrue(hub.draining)
        self.assertFalse(await engine.is_healthy(), "the engine is closed")

    async def test_process_without_models_starts_with_a_warning(self) -> None:
        with self.assertLogs("responses.asgi", "WARNING") as logged:
            _, sent = await self.exchange(None, "lifespan.startup", "lifespan.shutdown")
        self.assertEqual(sent[0]["type"], "lifespan.startup.complete")
        self.assertIn("no model is served: set RESPONSES_MODELS", logged.output[0])

    async def test_process_whose_engine_does_not_start_is_told_to_end(self) -> None:
        with self.assertLogs("responses.asgi", "ERROR"):
            _, sent = await self.exchange(Unavailable(), "lifespan.startup")
        self.assertEqual([message["type"] for message in sent], ["lifespan.startup.failed"])
        self.assertIn("no engine", sent[0]["message"])
