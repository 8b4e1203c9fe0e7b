"""Responses in conversations: they are told all of it, add to it at their end, and have it to themselves until then."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from unittest import mock

import orjson
from django.test import AsyncClient

from responses_app.engines.replay.engine import Delay, Fault, Recording, ReplayEngine, Tokens
from responses_app.models import ConversationItem, Item, Response
from tests.support.api.case import ENCODING, HELLO, TOOL, WEATHER, record_text, tokens
from tests.support.api.conversation_case import ConversationCase, texts, user

SILENT = Recording([Tokens(tokens("<|channel|>final<|message|>Once upon")), Delay(600), Tokens(tokens(" a time<|return|>"))])
LONG = HELLO.replace("there", "there " * 40)
BROKEN = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Fault("bad", "no")])


class InterruptedEngine(ReplayEngine):
    """Replay engine that awaits `interruption` once, when a prepared response is about to begin."""

    interruption: Coroutine[Any, Any, Any] | None = None

    async def is_healthy(self) -> bool:
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            await interruption
        return await super().is_healthy()


class ConversationRunTest(ConversationCase):
    """Against the real database, with a scripted engine."""

    async def begin(self, client: AsyncClient, *texts: str) -> str:
        """A conversation with these messages of the user."""
        uid: str = (await self.ask(client, "post", "", items=[user(text) for text in texts]))["id"]
        return uid

    def prompt(self) -> str:
        """Return the last prompt of the model."""
        text: str = ENCODING.decode(list(self.engine.requests[-1].prompt))
        return text

    async def test_response_reads_the_conversation_and_adds_input_and_output(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            uid = await self.begin(client, "I am Ada.")
            made = await self.made(client, input="Who am I?", conversation=uid)
            self.assertEqual(made["conversation"], {"id": uid})
            self.assertLess(self.prompt().index("I am Ada."), self.prompt().index("Who am I?"))
            items = await self.listed(client, uid)
            self.assertEqual(texts(items), ["I am Ada.", "Who am I?", "Hello there!"])
            self.assertEqual(items[2], made["output"][0])
            got = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
            self.assertEqual(got, made)
            events = await self.stream(client, input="Again.", conversation={"id": uid})
            self.assertEqual(
                {orjson.dumps(e["response"]["conversation"]) for e in (events[0], events[-1])}, {orjson.dumps({"id": uid})}
            )
            self.assertIn("Hello there!", self.prompt())
            expected = ["I am Ada.", "Who am I?", "Hello there!", "Again.", "Hello there!"]
            self.assertEqual(texts(await self.listed(client, uid)), expected)
            page = orjson.loads(
                (await client.get(f"/v1/responses/{events[-1]['response']['id']}/input_items?order=asc")).content
            )
            self.assertEqual(texts(page["data"]), expected[:4])

    async def test_items_that_were_linked_keep_the_order_of_the_conversation(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, input="One")
            older = first["output"][0]["id"]
            uid = await self.begin(client, "Two")
            await self.ask(client, "post", f"/{uid}/items", items=[{"type": "item_reference", "id": older}])
            made = await self.made(client, input="Three", conversation=uid)
            page = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items?order=asc")).content)
            self.assertEqual(texts(page["data"]), ["Two", "Hello there!", "Three"])
            newest = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items?after={older}")).content)
            self.assertEqual(texts(newest["data"]), ["Two"])
            await self.made(client, input="Four", previous_response_id=made["id"])
            places = [self.prompt().index(text) for text in ("Two", "Hello there!", "Three", "Four")]
            self.assertEqual(places, sorted(places))

    async def test_conversation_runs_a_single_response_at_a_time(self) -> None:
        # The engine begins before the database refuses two of them.
        async with self.serving(SILENT, *[record_text(HELLO)] * 3) as client:
            uid = await self.begin(client, "Hi")
            running = await self.made(client, conversation=uid, background=True)
            before = await Response.objects.acount(), await Item.objects.acount()
            for streamed in (False, True):
                self.locked(await self.post(client, conversation=uid, stream=streamed))
            with mock.patch("responses_app.store.content.conversations.active_response", return_value=Response.objects.none()):
                # Two that asked at the same moment: the database lets one of them in.
                self.locked(await self.post(client, conversation=uid))
                self.locked(await self.post(client, conversation=uid, store=False))
            self.locked(await self.call(client, "post", f"/{uid}/items", items=[user("x")]))
            self.locked(await self.call(client, "delete", f"/{uid}"))
            self.assertEqual((await Response.objects.acount(), await Item.objects.acount()), before)
            cancelled = await client.post(f"/v1/responses/{running['id']}/cancel")
            self.assertEqual(cancelled.status_code, 200, cancelled.content)
            self.assertEqual(texts(await self.listed(client, uid)), ["Hi"], "what was cancelled leaves nothing")
            await self.made(client, input="Now?", conversation=uid)
            self.assertEqual(texts(await self.listed(client, uid)), ["Hi", "Now?", "Hello there!"])

    async def test_conversation_that_changes_while_a_response_begins_refuses_it(self) -> None:
        self.engine = engine = InterruptedEngine()
        async with self.serving(*[record_text(HELLO)] * 5) as client:
            uid = await self.begin(client, "One")
            for streamed in (False, True):
                engine.interruption = self.ask(client, "post", f"/{uid}/items", items=[user("Two")])
                self.locked(await self.post(client, conversation=uid, stream=streamed))
            made = await self.made(client, input="Three", conversation=uid)
            page = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items?order=asc")).content)
            self.assertEqual(texts(page["data"]), ["One", "Two", "Two", "Three"])
            for background in (False, True):
                uid = await self.begin(client, "One")
                engine.interruption = self.ask(client, "delete", f"/{uid}")
                response = await self.post(client, conversation=uid, background=background)
                self.refused(response, 404, None, None, f"Conversation with id '{uid}' not found.")
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_refused_response_leaves_its_denial_usable(self) -> None:
        self.engine = engine = InterruptedEngine()
        request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"}
        denial = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False}
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            uid = await self.begin(client)
            await self.ask(client, "post", f"/{uid}/items", items=[request])
            engine.interruption = self.ask(client, "post", f"/{uid}/items", items=[user("Two")])
            self.locked(await self.post(client, conversation=uid, input=[denial]))
            await self.made(client, conversation=uid, input=[denial])

    def locked(self, response: Any) -> None:
        self.refused(
            response, 400, "conversation_locked", "conversation", "Another process is currently operating on this conversation."
        )

    async def test_a_failed_one_adds_nothing_and_an_incomplete_one_does(self) -> None:
        async with self.serving(BROKEN, record_text(LONG)) as client:
            uid = await self.begin(client)
            failed = await self.post(client, input="x", conversation=uid)
            self.assertEqual(failed.status_code, 400, failed.content)
            self.assertEqual(await self.listed(client, uid), [])
            made = await self.made(client, input="y", conversation=uid, max_output_tokens=16)
            self.assertEqual(made["status"], "incomplete")
            self.assertEqual([item["status"] for item in await self.listed(client, uid)], ["completed", "incomplete"])

    async def test_unstored_response_still_adds_its_items(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            uid = await self.begin(client)
            made = await self.made(client, input="x", conversation=uid, store=False)
            items = await self.listed(client, uid)
            self.assertEqual(texts(items), ["x", "Hello there!"])
            for answer in (await client.get(f"/v1/responses/{made['id']}"), await client.delete(f"/v1/responses/{made['id']}")):
                self.refused(answer, 404, None, None)
            await self.made(client, input=[{"type": "item_reference", "id": items[1]["id"]}, user("y")])
            self.assertIn("Hello there!", self.prompt())

    async def test_a_branch_leaves_the_conversation_as_it_is(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            uid = await self.begin(client, "Hi")
            first = await self.made(client, input="One", conversation=uid)
            await self.made(client, input="Two", conversation=uid)
            before = await self.listed(client, uid)
            branch = await self.made(client, input="Three", previous_response_id=first["id"])
            self.assertNotIn("conversation", branch)
            self.assertNotIn("Two", self.prompt())
            self.assertEqual(await self.listed(client, uid), before)

    async def test_calls_are_answered_in_the_next_turn(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO)) as client:
            uid = await self.begin(client)
            made = await self.made(client, input="Weather?", conversation=uid, tools=[TOOL])
            unanswered = await self.post(client, input="And?", conversation=uid, tools=[TOOL])
            self.refused(unanswered, 400, None, "input", "No tool output found")
            call = made["output"][-1]["call_id"]
            result = {"type": "function_call_output", "call_id": call, "output": "sunny"}
            await self.made(client, input=[result], conversation=uid, tools=[TOOL])
            kinds = [item["type"] for item in await self.listed(client, uid)]
            self.assertEqual(kinds, ["message", "reasoning", "function_call", "function_call_output", "message"])

    async def test_deleted_responses_leave_the_items_of_the_conversation(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            uid = await self.begin(client)
            made = await self.made(client, input="One", conversation=uid)
            self.assertEqual((await client.delete(f"/v1/responses/{made['id']}")).status_code, 200)
            await self.made(client, input="Two", conversation=uid)
            self.assertEqual(texts(await self.listed(client, uid)), ["One", "Hello there!", "Two", "Hello there!"])
            self.assertEqual(await ConversationItem.objects.acount(), 4)

    async def test_invalid_conversation_is_refused_by_path(self) -> None:
        async with self.serving() as client:
            for value, status, code, param in (
                ("abc", 400, "invalid_value", "conversation"),
                ({"id": "resp_1"}, 400, "invalid_value", "conversation.id"),
                ({"id": 5}, 400, "invalid_type", "conversation.id"),
                ({}, 400, "missing_required_parameter", "conversation.id"),
                ({"id": "conv_1", "x": 1}, 400, "unknown_parameter", "conversation.x"),
                (5, 400, "invalid_type", "conversation"),
                ("conv_1", 404, None, None),
            ):
                self.refused(await self.post(client, conversation=value), status, code, param)
            both = await self.post(client, conversation="conv_1", previous_response_id="resp_1")
            self.refused(both, 400, "mutually_exclusive_parameters", None, "'conversation'")
            self.assertEqual(await Response.objects.acount(), 0)
