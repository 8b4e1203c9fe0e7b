"""Outputs of server tools that only the model reads: in the next round, in later responses, and in no event."""

from __future__ import annotations

import asyncio
from io import StringIO
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.core.management import call_command

from responses_app.engines.replay.engine import Recording
from responses_app.models import ApiKey, Event, ToolOutput
from responses_app.store.content.tool_outputs import split_data_url
from tests.support.api.case import KeyedClient, record_text
from tests.support.runs.server_tools import (
    LIMIT_S,
    PICTURE,
    ROME,
    HiddenOutputTools,
    RoundsCase,
    answer,
    call,
    hidden_text,
    shows,
)
from tests.support.store.stored_events import read_stored_events
from tests.support.waiting import eventually

OUTPUTS = "code_interpreter_call.outputs"
HIDDEN = hidden_text("Rome")
# A harmony prompt shows no NUL.
VISIBLE = "For the model: Rome"


class ToolOutputTest(RoundsCase):
    def setUp(self) -> None:
        super().setUp()
        self.tools = HiddenOutputTools()

    def lines(self, *more: Recording) -> list[Recording]:
        return [record_text(call("demo__look", "Rome")), record_text(answer("Warm."), match=shows(VISIBLE)), *more]

    async def code_call(self, client: KeyedClient, **fields: Any) -> dict[str, Any]:
        last = (await self.stream(client, **fields))[-1]["response"]
        self.assertEqual(last["status"], "completed", last["error"])
        return dict(last["output"][0])

    async def test_output_reaches_the_model_and_no_event(self) -> None:
        async with self.serving(*self.lines()) as client:
            item = await self.code_call(client)
            self.assertIsNone(item["outputs"])
            row = await ToolOutput.objects.aget(item_uid=item["id"])
            self.assertEqual(bytes(row.text or b"").decode(), HIDDEN)
            self.assertEqual([(row.media_types, [bytes(one) for one in row.images])], [(["image/png"], [split(PICTURE)])])
            events = await read_stored_events(Event.objects.all())
            self.assertNotIn(VISIBLE, str(events))
            self.assertNotIn("model_", str(events))

    async def test_outputs_are_in_the_item_with_the_include(self) -> None:
        async with self.serving(*self.lines()) as client:
            item = await self.code_call(client, include=[OUTPUTS])
            self.assertEqual(item["outputs"], [{"type": "logs", "logs": ROME}])

    async def has_a_done_item(self) -> bool:
        """Return whether the end of an item is stored."""
        events = await read_stored_events(Event.objects.all())
        return any(event["type"] == "response.output_item.done" for event in events)

    async def test_output_is_committed_with_the_event_of_the_result(self) -> None:
        self.tools.gates = {"Oslo": asyncio.Event()}
        two = f"{call('demo__look', 'Rome', '<|end|>')}<|start|>assistant{call('demo__look', 'Oslo')}"
        async with self.serving(record_text(two), record_text(answer("Done."))) as client:
            answered = asyncio.ensure_future(self.post(client))
            async with asyncio.timeout(LIMIT_S):
                await eventually(self.has_a_done_item)
                self.assertEqual(await ToolOutput.objects.acount(), 1)
                self.tools.gates["Oslo"].set()
                await answered
            self.assertEqual(await ToolOutput.objects.acount(), 2)

    async def test_later_responses_of_the_chain_read_the_output(self) -> None:
        async with self.serving(*self.lines(record_text(answer("Still warm."), match=shows(VISIBLE)))) as client:
            made = await self.made(client)
            again = await self.made(client, previous_response_id=made["id"], input="And now?")
            self.assertEqual(again["output"][0]["content"][0]["text"], "Still warm.")

    async def test_later_responses_of_the_conversation_read_the_output(self) -> None:
        async with self.serving(*self.lines(record_text(answer("Still warm."), match=shows(VISIBLE)))) as client:
            created = await client.post("/v1/conversations", b"{}", content_type="application/json")
            conversation = orjson.loads(created.content)["id"]
            await self.made(client, conversation=conversation)
            again = await self.made(client, conversation=conversation, input="And now?")
            self.assertEqual(again["output"][0]["content"][0]["text"], "Still warm.")

    async def test_items_that_the_client_sends_back_read_the_output(self) -> None:
        async with self.serving(*self.lines(record_text(answer("Still warm."), match=shows(VISIBLE)))) as client:
            made = await self.made(client)
            again = await self.made(client, input=[*made["output"], {"role": "user", "content": "And now?"}])
            self.assertEqual(again["output"][-1]["content"][0]["text"], "Still warm.")

    async def test_items_of_another_project_have_no_output(self) -> None:
        async with self.serving(*self.lines(record_text(answer("I see nothing.")))) as client:
            made = await self.made(client)
            _, secret = await sync_to_async(ApiKey.make)("other")
            await self.made(KeyedClient(secret), input=[*made["output"], {"role": "user", "content": "And now?"}])
            self.assertFalse(shows(VISIBLE)(self.engine.requests[-1].prompt))

    async def test_unstored_responses_store_no_output(self) -> None:
        async with self.serving(*self.lines()) as client:
            await self.code_call(client, store=False)
            self.assertFalse(await ToolOutput.objects.aexists())

    async def test_deletion_deletes_the_output(self) -> None:
        async with self.serving(*self.lines()) as client:
            made = await self.made(client)
            self.assertEqual((await client.delete(f"/v1/responses/{made['id']}")).status_code, 200)
            self.assertFalse(await ToolOutput.objects.aexists())

    async def test_erasure_counts_and_erases_the_outputs(self) -> None:
        async with self.serving(*self.lines()) as client:
            await self.made(client)
            out = StringIO()
            await sync_to_async(call_command)("erase", "--project", "test", stdout=out)
            self.assertIn("1 tool outputs", out.getvalue())
            await sync_to_async(call_command)("erase", "--project", "test", "--yes", stdout=out)
            self.assertFalse(await ToolOutput.objects.aexists())


def split(url: str) -> bytes:
    parts = split_data_url(url)
    assert parts is not None
    return parts[1]
