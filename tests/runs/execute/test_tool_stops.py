"""Cancel, delete, steer and drain while a tool runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from django.test import AsyncClient

from responses_app.models import Event, Response
from responses_app.runs import manager
from tests.support.api.case import record_text
from tests.support.runs.server_tools import LIMIT_S, ROME, RoundsCase, answer, call, shows
from tests.support.store.stored_events import read_stored_events


class StopTest(RoundsCase):
    """Cancel, delete, steer and drain reach a running tool."""

    @asynccontextmanager
    async def at_work(self, **body: Any) -> AsyncIterator[tuple[AsyncClient, str]]:
        """A background response whose tool runs."""
        async with self.serving(record_text(call("demo__look", "Rome"))) as client:
            self.tools.gates = {"Rome": asyncio.Event()}
            made = await self.made(client, background=True, **body)
            async with asyncio.timeout(LIMIT_S):
                await self.tools.entered.wait()
                yield client, made["id"]

    async def ended(self, uid: str) -> dict[str, Any]:
        events = await read_stored_events(Event.objects.filter(response__uid=uid))
        self.judge(events)
        return dict(events[-1]["response"])

    async def test_cancel(self) -> None:
        async with self.at_work() as (client, uid):
            got = await client.post(f"/v1/responses/{uid}/cancel")
            self.assertEqual(orjson.loads(got.content)["status"], "cancelled")
            self.assertEqual(self.tools.cancelled, ["Rome"])
            last = await self.ended(uid)
            self.assertEqual(self.calls(last)[0]["status"], "incomplete")

    async def test_delete(self) -> None:
        async with self.at_work() as (client, uid):
            got = await client.delete(f"/v1/responses/{uid}")
            self.assertEqual(got.status_code, 200)
            self.assertEqual(self.tools.cancelled, ["Rome"])
            self.assertFalse(await Response.objects.filter(uid=uid).aexists())

    async def test_steer(self) -> None:
        async with self.at_work() as (_, uid):
            run = self.hub.runs[uid]
            self.assertTrue(run.steer())
            self.assertTrue(run.steer())
            self.tools.gates["Rome"].set()
            await run.wait_terminal()
            last = await self.ended(uid)
            self.assertEqual((self.calls(last)[0]["output"], self.tools.cancelled), (ROME, []))
            self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {"reason": "steered"}))

    async def test_drain_hands_the_call_to_another_process(self) -> None:
        async with self.at_work() as (client, uid):
            await self.hub.drain(0.01)
            self.assertEqual(self.tools.cancelled, ["Rome"])
            await self.hub.close()
            await self.engine.start()
            self.engine.add(record_text(answer("Warm."), match=shows(ROME)))
            self.tools.gates = {}
            second = self.new_hub()
            manager.set_current(second)
            try:
                await second.start()
                got = await client.get(f"/v1/responses/{uid}?stream=true")
                last = self.judge(await self.read(got))[-1]["response"]
                self.assertEqual((last["status"], self.tools.runs), ("completed", ["Rome", "Rome"]))
            finally:
                await second.close()
                await self.engine.start()
