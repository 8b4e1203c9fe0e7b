"""One log, two profiles: what differs is the names of the events of raw reasoning, and nothing else."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import AsyncClient

from tests.api.case import THOUGHT, ApiCase, bare, said

OPEN = "/openresponses/v1"
UNION = {
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.reasoning.delta",
    "response.reasoning.done",
}


class ProfileTest(ApiCase):
    """With a scripted engine."""

    async def events(self, client: AsyncClient, path: str) -> list[dict[str, Any]]:
        """A replay."""
        return await self.read(await client.get(f"{path}?stream=true"))

    async def test_the_names_are_those_of_open_responses_and_the_log_is_the_same(self) -> None:
        async with self.serving(said(THOUGHT)) as client:
            body = orjson.dumps({"model": "m", "input": "Hi", "stream": True})
            response = await client.post(f"{OPEN}/responses", body, content_type="application/json")
            live = await self.read(response)
            uid = live[0]["response"]["id"]
            self.assertLessEqual({event["type"] for event in live}, UNION)
            self.assertIn("response.reasoning.delta", {event["type"] for event in live})
            self.assertEqual(await self.events(client, f"{OPEN}/responses/{uid}"), live)
            ours = self.judge(await self.events(client, f"/v1/responses/{uid}"))
            back = [{**e, "type": e["type"].replace("response.reasoning.", "response.reasoning_text.")} for e in live]
            self.assertEqual(bare(back), bare(ours))
            for path in (OPEN, "/v1"):
                self.assertEqual(orjson.loads((await client.get(f"{path}/responses/{uid}")).content), ours[-1]["response"])

    async def test_items_leave_out_what_has_no_value(self) -> None:
        async with self.serving(said(THOUGHT)) as client:
            body = orjson.dumps({"model": "m", "input": "Hi"})
            made = orjson.loads((await client.post(f"{OPEN}/responses", body, content_type="application/json")).content)
            for item in made["output"]:
                self.assertNotIn(None, item.values())
                self.assertNotIn(None, [value for part in item["content"] for value in part.values()])

    async def test_every_address_is_there_under_both(self) -> None:
        async with self.serving() as client:
            for path in ("/responses", "/models", "/conversations/conv_x/items", "/responses/resp_x", "/nowhere"):
                ours, theirs = await client.get(f"/v1{path}"), await client.get(f"{OPEN}{path}")
                self.assertEqual((ours.status_code, ours["Content-Type"]), (theirs.status_code, theirs["Content-Type"]), path)
