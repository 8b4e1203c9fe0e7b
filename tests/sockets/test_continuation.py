"""Continuation on a WebSocket: the cached context of each stream, also of unstored responses."""

from __future__ import annotations

from typing import Any

import orjson

from responses_app.engines.replay.engine import Fault, Recording, Tokens
from responses_app.models import Item, Response, ToolOutput
from responses_app.sockets import streams
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, record_text, tokens
from tests.support.api.websocket_case import SocketCase
from tests.support.runs.server_tools import HiddenOutputTools, RoundsCase, answer, call, shows

MISSING = {"type": "function_call_output", "call_id": "call_missing", "output": "?"}


class ContinuedToolOutputTest(RoundsCase, SocketCase):
    """Outputs of server tools that only the model reads."""

    async def test_unstored_response_is_continued_with_the_output(self) -> None:
        self.tools = HiddenOutputTools()
        lines = [call("demo__look", "Rome"), answer("Warm."), answer("Still warm."), answer("And still.")]
        async with self.serving(*map(record_text, lines)), self.socket() as socket:
            made = await socket.create_response(store=False)
            for _ in range(2):
                made = await socket.create_response("And now?", previous_response_id=made["id"], store=False)
                self.assertTrue(shows("For the model: Rome")(self.engine.requests[-1].prompt))
        self.assertFalse(await ToolOutput.objects.aexists())


class ContinuingTest(SocketCase):
    def prompts(self) -> list[list[int]]:
        """Return the prompts of all engine requests."""
        return [list(request.prompt) for request in self.engine.requests]

    async def chain(self, client: Any, turns: int, **fields: Any) -> None:
        """Create a chain of responses over HTTP, to compare the prompts."""
        previous = None
        for number in range(turns):
            made = await self.made(client, input=f"turn {number}", previous_response_id=previous, **fields)
            previous = made["id"]

    async def test_prompts_are_the_same_as_over_http(self) -> None:
        async with self.serving(*[record_text(THOUGHT) for _ in range(6)]) as client, self.socket() as socket:
            await self.chain(client, 3)
            previous = None
            for number in range(3):
                made = await socket.create_response(f"turn {number}", previous_response_id=previous, store=False)
                previous = made["id"]
            prompts = self.prompts()
            self.assertEqual(prompts[3:], prompts[:3])
        self.assertEqual(await Response.objects.acount(), 3)

    async def test_an_unstored_response_is_unknown_on_other_connections(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as one, self.socket() as other:
            made = await one.create_response(store=False)
            refused = await other.create_rejected(previous_response_id=made["id"], store=False)
            self.assertEqual(refused["code"], "previous_response_not_found")
            self.assertEqual(refused["param"], "previous_response_id")
            self.assertEqual((await other.create_response(store=False))["status"], "completed")

    async def test_an_unstored_response_is_unknown_over_http(self) -> None:
        async with self.serving(record_text(HELLO)) as client, self.socket() as socket:
            made = await socket.create_response(store=False)
            self.refused_over_http(await self.post(client, previous_response_id=made["id"]))
            self.assertEqual((await client.get(f"/v1/responses/{made['id']}")).status_code, 404)

    def refused_over_http(self, response: Any) -> None:
        self.refused(response, 400, "previous_response_not_found", "previous_response_id")

    async def test_a_failed_continuation_evicts_the_context(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            made = await socket.create_response(store=False)
            first = await socket.create_rejected([MISSING], previous_response_id=made["id"], store=False)
            self.assertEqual(first["status"], 400)
            second = await socket.create_rejected(previous_response_id=made["id"], store=False)
            self.assertEqual(second["code"], "previous_response_not_found")

    async def test_a_continuation_that_fails_while_running_evicts_the_context(self) -> None:
        broken = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Fault("down", "killed")])
        async with self.serving(record_text(HELLO), broken), self.socket() as socket:
            made = await socket.create_response(store=False)
            failed = await socket.create_response(previous_response_id=made["id"], store=False)
            self.assertEqual(failed["status"], "failed")
            refused = await socket.create_rejected(previous_response_id=made["id"], store=False)
            self.assertEqual(refused["code"], "previous_response_not_found")

    async def test_an_evicted_stored_response_is_read_from_the_database(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            made = await socket.create_response()
            await socket.create_rejected([MISSING], previous_response_id=made["id"])
            self.assertEqual((await socket.create_response(previous_response_id=made["id"]))["status"], "completed")

    async def test_deleted_response_is_not_continued(self) -> None:
        async with self.serving(*[record_text(WEATHER)] * 2) as client, self.socket() as socket:
            made = await socket.create_response(tools=[TOOL])
            await client.delete(f"/v1/responses/{made['id']}")
            result = {"type": "function_call_output", "call_id": made["output"][1]["call_id"], "output": "Sunny"}
            refused = await socket.create_rejected([result], previous_response_id=made["id"])
            self.assertEqual((refused["code"], refused["param"]), ("previous_response_not_found", "previous_response_id"))
        self.assertFalse(await Response.objects.aexists())
        self.assertFalse(await Item.objects.aexists())

    async def test_an_invalid_request_without_previous_response_evicts_nothing(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            made = await socket.create_response(store=False)
            await socket.create_rejected(temperature=9)
            self.assertEqual(
                (await socket.create_response(previous_response_id=made["id"], store=False))["status"], "completed"
            )

    async def test_a_failed_fork_on_another_stream_evicts_nothing(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            made = await socket.create_response(store=False, stream_id="a")
            refused = await socket.create_rejected([MISSING], previous_response_id=made["id"], store=False, stream_id="b")
            self.assertEqual(refused["status"], 400)
            again = await socket.create_response(previous_response_id=made["id"], store=False, stream_id="a")
            self.assertEqual(again["status"], "completed")

    async def test_two_streams_go_on_from_one_response(self) -> None:
        async with self.serving(*[record_text(HELLO) for _ in range(5)]), self.socket() as socket:
            root = await socket.create_response("root", store=False)
            fork = await socket.create_response("left", previous_response_id=root["id"], store=False, stream_id="a")
            main = await socket.create_response("right", previous_response_id=root["id"], store=False)
            for made, stream_id in ((fork, "a"), (main, None)):
                await socket.create_response("more", previous_response_id=made["id"], store=False, stream_id=stream_id)
            left, right = (self.dialect.token_text(prompt) for prompt in self.prompts()[3:])
            self.assertIn("left", left)
            self.assertNotIn("right", left)
            self.assertIn("right", right)
            self.assertNotIn("left", right)

    async def test_only_the_latest_of_a_stream_is_remembered(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            first = await socket.create_response(store=False)
            await socket.create_response(store=False)
            refused = await socket.create_rejected(previous_response_id=first["id"], store=False)
            self.assertEqual(refused["code"], "previous_response_not_found")

    async def test_a_stream_begins_afresh_without_a_previous_response(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            await socket.create_response("One.", store=False)
            await socket.create_response("Two.", store=False)
            self.assertNotIn("One.", self.dialect.token_text(self.prompts()[1]))

    async def test_a_stored_one_is_kept_as_over_http(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client, self.socket() as socket:
            first = await socket.create_response("One.")
            second = await socket.create_response("Two.", previous_response_id=first["id"])
            # The same rows as over HTTP.
            row = await Response.objects.aget(uid=second["id"])
            keys = Item.objects.filter(response__uid=first["id"]).order_by("pk").values_list("pk", flat=True)
            self.assertEqual(row.history, [key async for key in keys])
            self.assertEqual(row.thread, first["id"])
            third = await self.made(client, input="Three.", previous_response_id=second["id"])
            prompt = self.dialect.token_text(self.prompts()[2])
            self.assertTrue(all(word in prompt for word in ("One.", "Two.", "Three.")))
            listed = orjson.loads((await client.get(f"/v1/responses/{third['id']}/input_items?order=asc")).content)["data"]
            self.assertEqual(
                [item["content"][0]["text"] for item in listed], ["One.", "Hello there!", "Two.", "Hello there!", "Three."]
            )

    async def test_a_stored_one_is_continued_without_a_look_at_the_store(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            first = await socket.create_response("One.")
            # A lookup in the database would fail.
            await Item.objects.all().aupdate(body="nothing")
            await Response.objects.all().aupdate(uid="resp_gone")
            await socket.create_response("Two.", previous_response_id=first["id"])
            self.assertIn("One.", self.dialect.token_text(self.prompts()[1]))

    async def test_a_stored_one_keeps_what_it_continues_if_that_was_not_stored(self) -> None:
        async with self.serving(*[record_text(HELLO) for _ in range(4)]) as client, self.socket() as socket:
            first = await socket.create_response("One.")
            second = await socket.create_response("Two.", previous_response_id=first["id"], store=False)
            third = await socket.create_response("Three.", previous_response_id=second["id"])
            listed = orjson.loads((await client.get(f"/v1/responses/{third['id']}/input_items?order=asc")).content)["data"]
            texts = ["One.", "Hello there!", "Two.", "Hello there!", "Three."]
            self.assertEqual([item["content"][0]["text"] for item in listed], texts)
            await self.made(client, input="Four.", previous_response_id=third["id"])
            prompt = self.dialect.token_text(self.prompts()[3])
            self.assertTrue(all(prompt.count(word) == 1 for word in ("One.", "Two.", "Three.", "Four.")), prompt)

    async def test_responses_continue_across_http_and_sockets(self) -> None:
        async with self.serving(*[record_text(HELLO) for _ in range(3)]) as client, self.socket() as socket:
            first = await self.made(client, input="One.")
            second = await socket.create_response("Two.", previous_response_id=first["id"])
            await self.made(client, input="Three.", previous_response_id=second["id"])
            prompt = self.dialect.token_text(self.prompts()[2])
            self.assertTrue(all(word in prompt for word in ("One.", "Two.", "Three.")))

    async def test_a_chain_of_tools_that_is_not_stored(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(WEATHER), record_text(HELLO)), self.socket() as socket:
            made = await socket.create_response(store=False, tools=[TOOL])
            for _ in range(2):
                output = {"type": "function_call_output", "call_id": made["output"][-1]["call_id"], "output": "sunny"}
                made = await socket.create_response([output], previous_response_id=made["id"], store=False, tools=[TOOL])
            self.assertEqual(made["output"][-1]["type"], "message")

    async def test_contexts_over_the_limit_are_evicted_oldest_first(self) -> None:
        before, streams.MAX_CACHED_BYTES = streams.MAX_CACHED_BYTES, 20_000
        try:
            async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)), self.socket() as socket:
                old = await socket.create_response("x" * 8_000, store=False, stream_id="a")
                new = await socket.create_response("y" * 4_000, store=False, stream_id="b")
                refused = await socket.create_rejected(previous_response_id=old["id"], store=False, stream_id="a")
                self.assertEqual(refused["code"], "previous_response_not_found")
                again = await socket.create_response(previous_response_id=new["id"], store=False, stream_id="b")
                self.assertEqual(again["status"], "completed")
        finally:
            streams.MAX_CACHED_BYTES = before


class WarmingTest(SocketCase):
    async def test_generate_false_prefills_without_output(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            warm = await socket.create_response("Look.", generate=False, store=False, instructions="Be brief.")
            self.assertEqual((warm["status"], warm["output"], warm["usage"]["output_tokens"]), ("completed", [], 0))
            (read,) = self.engine.prefilled
            self.assertEqual(warm["usage"]["input_tokens"], len(read.prompt))
            self.assertEqual(self.engine.requests, [])
            made = await socket.create_response("Go.", previous_response_id=warm["id"], store=False, instructions="Be brief.")
            prompt = self.dialect.token_text(self.engine.requests[0].prompt)
            self.assertTrue("Look." in prompt and "Go." in prompt)
            self.assertEqual(made["status"], "completed")

    async def test_with_no_input_at_all(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            warm = await socket.create_response([], generate=False, store=False, tools=[TOOL])
            self.assertEqual(
                (await socket.create_response("Go.", previous_response_id=warm["id"], store=False))["status"], "completed"
            )

    async def test_a_stored_one_can_be_read_and_continued_over_http(self) -> None:
        async with self.serving(record_text(HELLO)) as client, self.socket() as socket:
            warm = await socket.create_response("Look.", generate=False)
            self.assertEqual(orjson.loads((await client.get(f"/v1/responses/{warm['id']}")).content), warm)
            await self.made(client, previous_response_id=warm["id"])
            self.assertIn("Look.", self.dialect.token_text(self.engine.requests[0].prompt))

    async def test_a_prompt_that_does_not_fit_is_refused(self) -> None:
        async with self.serving(), self.socket() as socket:
            refused = await socket.create_rejected("word " * 140_000, generate=False)
            self.assertEqual(refused["code"], "context_length_exceeded")
