"""GET /health/live and /health/ready: each part that fails is named, and no part makes the answer late or a 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from django.db import connections

from responses_app.api.views import health
from responses_app.store.health import DatabaseProbe
from responses_app.tools import part_checks
from tests.support.api.case import ApiCase, KeyedClient
from tests.support.waiting import eventually

PARTS = {"database", "migrations", "storage", "engine", "draining", "warm_up", "sandbox", "files"}


@contextmanager
def database(**parameters: Any) -> Iterator[None]:
    """Have the health check ask a database with other settings."""
    with mock.patch.object(health, "_probe", DatabaseProbe()), mock.patch.dict(connections.settings["default"], parameters):
        yield


class HealthTest(ApiCase):
    """With a scripted engine."""

    async def ready(self, client: KeyedClient) -> tuple[int, dict[str, Any]]:
        answer = await client.get("/health/ready", headers={"Authorization": ""})
        return answer.status_code, answer.json()

    async def warm(self, client: KeyedClient) -> None:
        await self.hub.start()

        async def is_warm() -> bool:
            return "warm_up" not in (await self.ready(client))[1]["failed"]

        await eventually(is_warm)

    async def test_every_part_is_named_and_works(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            status, body = await self.ready(client)
            self.assertEqual((status, body["status"], body["failed"]), (200, "ready", []))
            self.assertEqual(set(body["checks"]), PARTS)
            self.assertEqual({check["status"] for check in body["checks"].values()}, {"ok"})
            self.assertEqual(body["checks"]["engine"]["models"], {"m": "ready"})
            self.assertEqual((await client.get("/health")).json(), body)
            self.assertEqual((await client.head("/health/ready")).status_code, 200)
            self.assertEqual((await client.get("/health/live")).json(), {"status": "live"})

    async def test_parts_that_fail_are_named_and_keep_the_process_ready(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            with mock.patch.dict(part_checks.problems, sandbox="No module named 'secret'", files="/secret is away"):
                status, body = await self.ready(client)
            self.assertEqual((status, body["failed"], body["degraded"]), (200, [], ["sandbox", "files"]))
            for part, message in health.DEGRADED.items():
                self.assertEqual(body["checks"][part], {"status": "failed", "message": message})
            self.assertNotIn("secret", str(body))
            self.assertEqual((await self.ready(client))[1]["degraded"], [])

    async def test_process_that_has_not_started_is_alive_and_not_ready(self) -> None:
        async with self.serving() as client:
            # A load balancer asks every second or two.
            with self.assertNoLogs("django.request"):
                status, body = await self.ready(client)
            self.assertEqual((status, body["failed"]), (503, ["engine", "warm_up"]))
            self.assertEqual(body["checks"]["engine"]["models"], {"m": "loading"})
            self.assertEqual((await client.get("/health/live")).status_code, 200)

    async def test_engine_that_is_away_is_named(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            self.engine.fail_for()
            status, body = await self.ready(client)
            self.assertEqual((status, body["failed"]), (503, ["engine"]))
            self.assertEqual(body["checks"]["engine"]["models"], {"m": "away"})
            self.engine.recover()
            self.assertEqual((await self.ready(client))[0], 200)

    async def test_model_that_its_engine_has_removed_stops_no_other_model(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            adapter = mock.Mock(is_healthy=mock.AsyncMock(return_value=False), lacks_model=True)
            removed = replace(self.hub.served["m"], name="adapter", engine=adapter)
            with mock.patch.dict(self.hub.served, adapter=removed):
                status, body = await self.ready(client)
                self.assertEqual((status, body["failed"], body["degraded"]), (200, [], ["engine"]))
                self.assertEqual(body["checks"]["engine"]["models"], {"m": "ready", "adapter": "removed"})
                self.engine.fail_for()
                self.assertEqual((await self.ready(client))[1]["checks"]["engine"]["message"], "Not ready: m.")
                self.engine.recover()
            with mock.patch.object(self.hub, "served", {"adapter": removed}):
                self.assertEqual((await self.ready(client))[1]["failed"], ["engine"])

    async def test_process_without_models_is_not_ready(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            with mock.patch.object(self.hub, "served", {}):
                status, body = await self.ready(client)
            self.assertEqual((status, body["failed"]), (503, ["engine"]))
            self.assertEqual(body["checks"]["engine"]["message"], health.NO_MODELS)

    async def test_engine_that_hangs_is_away_in_time(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            with (
                mock.patch.object(self.engine, "is_healthy", asyncio.Event().wait),
                mock.patch.object(health, "ENGINE_LIMIT_S", 0.01),
            ):
                self.assertEqual((await self.ready(client))[1]["checks"]["engine"]["models"], {"m": "away"})

    async def test_process_that_drains_is_not_ready(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            self.hub.is_leaving_soon = True
            self.assertEqual((await self.ready(client))[1]["failed"], ["draining"])
            await self.hub.drain(0)
            self.assertIn("draining", (await self.ready(client))[1]["failed"])
            self.assertEqual((await client.get("/health/live")).status_code, 200)

    async def test_database_that_is_away_is_named_without_its_address(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            with database(HOST="127.0.0.1", PORT="1", PASSWORD="hunter2"):
                answer = await client.get("/health/ready")
            self.assertEqual((answer.status_code, answer.json()["failed"]), (503, ["database", "migrations"]))
            self.assertEqual(answer.json()["checks"]["database"]["message"], "The database cannot be reached.")
            self.assertNotIn("127.0.0.1", answer.content.decode())
            self.assertNotIn("hunter2", answer.content.decode())

    async def test_database_without_tables_lacks_the_migrations(self) -> None:
        async with self.serving() as client:
            await self.warm(client)
            with database(NAME="template1"):
                status, body = await self.ready(client)
            self.assertEqual((status, body["failed"]), (503, ["migrations"]))
            self.assertRegex(
                body["checks"]["migrations"]["message"], r"^Not applied: .+ and \d+ more\. Run manage\.py migrate\.$"
            )

    async def test_warm_up_that_failed_is_tried_again(self) -> None:
        async with self.serving() as client:
            model = self.hub.served["m"]
            with mock.patch.object(model, "engine", wraps=self.engine) as engine, self.assertLogs("responses.runs", "ERROR"):
                type(engine).max_model_len = mock.PropertyMock(side_effect=RuntimeError("code of a model"))
                task = (await self.hub.start()).warm_up._task
                assert task is not None
                await task
                self.assertIn("warm_up", (await self.ready(client))[1]["failed"])
            await self.warm(client)
