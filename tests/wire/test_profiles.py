"""One log, two profiles: a response can be made, read, replayed and continued in either."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import AsyncClient

from tests.support.api.case import THOUGHT, ApiCase, bare, record_text
from tests.support.api.open_responses import opened

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
        async with self.serving(record_text(THOUGHT)) as client:
            body = orjson.dumps({"model": "m", "input": "Hi", "stream": True})
            response = await client.post(f"{OPEN}/responses", body, content_type="application/json")
            live = await self.read(response)
            uid = live[0]["response"]["id"]
            self.assertLessEqual({event["type"] for event in live}, UNION)
            self.assertIn("response.reasoning.delta", {event["type"] for event in live})
            self.assertEqual(await self.events(client, f"{OPEN}/responses/{uid}"), live)
            ours = self.judge(await self.events(client, f"/v1/responses/{uid}"))
            self.assertEqual(bare(live), bare(opened(ours)))
            for path, expected in ((OPEN, live), ("/v1", ours)):
                with self.subTest(path=path):
                    self.assertEqual(
                        orjson.loads((await client.get(f"{path}/responses/{uid}")).content), expected[-1]["response"]
                    )

    async def test_items_leave_out_what_has_no_value(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            body = orjson.dumps({"model": "m", "input": "Hi"})
            made = orjson.loads((await client.post(f"{OPEN}/responses", body, content_type="application/json")).content)
            for item in made["output"]:
                self.assertNotIn(None, item.values())
                self.assertNotIn(None, [value for part in item["content"] for value in part.values()])

    async def test_a_custom_tool_is_called_and_answered_under_the_name_of_its_maker(self) -> None:
        call = '<|channel|>commentary to=functions.t <|constrain|>json<|message|>{"input": "x"}<|call|>'
        async with self.serving(record_text(call), record_text(THOUGHT), record_text(THOUGHT)) as client:
            tool = {"type": "openai:custom", "name": "t"}
            requested = {"model": "m", "tools": [tool], "tool_choice": {"type": "openai:custom", "name": "t"}}
            made = await self.sent(client, {**requested, "input": "Hi"})
            self.assertEqual(made["tools"], [{**tool, "format": {"type": "text"}}])
            self.assertEqual(made["tool_choice"], {"type": "openai:custom", "name": "t"})
            call_item = made["output"][0]
            self.assertEqual((call_item["type"], call_item["input"]), ("openai:custom_tool_call", "x"))
            output = {"type": "openai:custom_tool_call_output", "call_id": call_item["call_id"], "output": "y"}
            for before in (
                {"input": [{"role": "user", "content": "Hi"}, call_item, output]},
                {"previous_response_id": made["id"]},
            ):
                with self.subTest(fields=list(before)):
                    again = await self.sent(client, {"model": "m", "input": [output], **before})
                    listed = orjson.loads((await client.get(f"{OPEN}/responses/{again['id']}/input_items")).content)["data"]
                    kinds = [item["type"] for item in reversed(listed)]
                    self.assertEqual(kinds, ["message", "openai:custom_tool_call", "openai:custom_tool_call_output"])
                    self.assertNotIn(None, [value for item in listed for value in item.values()])

    async def test_items_of_conversations_are_told_and_read_likewise(self) -> None:
        call = {"type": "openai:custom_tool_call", "call_id": "c", "name": "t", "input": "x"}
        async with self.serving() as client:
            made = orjson.loads((await client.post(f"{OPEN}/conversations", {}, content_type="application/json")).content)
            path = f"{OPEN}/conversations/{made['id']}/items"
            body = orjson.dumps({"items": [call]})
            added = orjson.loads((await client.post(path, body, content_type="application/json")).content)["data"]
            self.assertEqual(added, [{**call, "id": added[0]["id"], "status": "completed"}])
            self.assertEqual(orjson.loads((await client.get(path)).content)["data"], added)
            self.assertEqual(orjson.loads((await client.get(f"{path}/{added[0]['id']}")).content), added[0])
            ours = orjson.loads((await client.get(path.replace(OPEN, "/v1"))).content)["data"]
            self.assertEqual(ours, [{**added[0], "type": "custom_tool_call"}])

    async def sent(self, client: AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
        """A response made below the address of Open Responses."""
        response = await client.post(f"{OPEN}/responses", orjson.dumps(body), content_type="application/json")
        self.assertEqual(response.status_code, 200, response.content)
        made: dict[str, Any] = orjson.loads(response.content)
        return made

    async def test_every_address_is_there_under_both(self) -> None:
        async with self.serving() as client:
            for path in ("/responses", "/models", "/conversations/conv_x/items", "/responses/resp_x", "/nowhere"):
                with self.subTest(path=path):
                    ours, theirs = await client.get(f"/v1{path}"), await client.get(f"{OPEN}{path}")
                    self.assertEqual(
                        (ours.status_code, ours["Content-Type"]), (theirs.status_code, theirs["Content-Type"]), path
                    )
