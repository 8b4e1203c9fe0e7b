"""Compaction: the messages of the user stay, a sealed summary stands for the rest, and the next turn is told both."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from responses_app.models import ApiKey, Event, Item, Response
from responses_app.runs.prepare.items.selection import apply_compaction
from tests.support.api.case import ENCODING, HELLO, TOOL, WEATHER, ApiCase, record_text

SUMMARY = (
    "<|channel|>analysis<|message|>Keep it short.<|end|><|start|>assistant<|channel|>final<|message|>Ada likes teal.<|return|>"
)

# Reasoning without an answer.
EMPTY = HELLO.replace("Hello there!", "")


class CompactTest(ApiCase):
    """With a scripted engine and the real database."""

    async def compact(self, client: AsyncClient, **body: Any) -> Any:
        """POST /v1/responses/compact."""
        return await client.post("/v1/responses/compact", orjson.dumps({"model": "m", **body}), content_type="application/json")

    async def test_compacted_output_is_the_input_of_the_next_turn(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO), record_text(SUMMARY), record_text(HELLO)) as client:
            first = orjson.loads((await self.post(client, input="I am Ada.", tools=[TOOL])).content)
            result = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "sunny"}
            second = orjson.loads(
                (await self.post(client, input=[result], previous_response_id=first["id"], tools=[TOOL])).content
            )
            rows = await Response.objects.acount(), await Item.objects.acount(), await Event.objects.acount()
            answer = await self.compact(client, input="I like teal.", previous_response_id=second["id"])
            self.assertEqual(answer.status_code, 200, answer.content)
            compacted = orjson.loads(answer.content)
            self.assertEqual((await Response.objects.acount(), await Item.objects.acount(), await Event.objects.acount()), rows)
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for text in ("I am Ada.", "sunny", "Hello there!", "I like teal.", "Summarize our conversation"):
                with self.subTest(text=text):
                    self.assertIn(text, prompt)
            *messages, last = compacted["output"]
            self.assertEqual([m["content"][0]["text"] for m in messages], ["I am Ada.", "I like teal."])
            self.assertEqual(set(last), {"id", "type", "encrypted_content"})
            self.assertNotIn("teal", last["encrypted_content"])
            go_on = [*compacted["output"], {"role": "user", "content": "Who am I?"}]
            third = await self.post(client, input=go_on)
            self.assertEqual(third.status_code, 200, third.content)
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for text in ("I am Ada.", "Ada likes teal.", "Who am I?"):
                with self.subTest(text=text):
                    self.assertIn(text, prompt)
            self.assertNotIn("sunny", prompt)
            uid = orjson.loads(third.content)["id"]
            listed = orjson.loads((await client.get(f"/v1/responses/{uid}/input_items?order=asc")).content)["data"]
            self.assertEqual(listed[-2], last)

    async def test_a_token_of_another_project_or_kind_is_refused(self) -> None:
        _, secret = await sync_to_async(ApiKey.make)("other")
        async with self.serving(record_text(SUMMARY)) as client:
            token = orjson.loads((await self.compact(client, input="x")).content)["output"][-1]["encrypted_content"]
            spoilt = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
            for item, headers in (
                ({"type": "compaction", "encrypted_content": spoilt}, {}),
                ({"type": "compaction", "encrypted_content": "x"}, {}),
                ({"type": "compaction", "encrypted_content": token}, {"Authorization": f"Bearer {secret}"}),
                ({"type": "reasoning", "summary": [], "encrypted_content": token}, {}),
            ):
                body = orjson.dumps({"model": "m", "input": [item]})
                answer = await client.post("/v1/responses", body, content_type="application/json", headers=headers)
                self.refused(answer, 400, "invalid_encrypted_content", "input[0].encrypted_content")

    async def test_invalid_compaction_requests_are_refused_by_path(self) -> None:
        async with self.serving() as client:
            nameless = await client.post("/v1/responses/compact", b'{"input": "x"}', content_type="application/json")
            self.refused(nameless, 400, "missing_required_parameter", "model")
            self.refused(await self.compact(client), 400, "missing_required_parameter", "input")
            self.refused(await self.compact(client, input="x", tools=[TOOL]), 400, "unknown_parameter", "tools")
            self.refused(await self.compact(client, input="x", stream=True), 400, "unknown_parameter", "stream")
            self.refused(
                await self.compact(client, input=[{"type": "compaction"}]),
                400,
                "missing_required_parameter",
                "input[0].encrypted_content",
            )

    async def test_a_summary_without_text_is_tried_again_with_the_lowest_effort(self) -> None:
        async with self.serving(record_text(EMPTY), record_text(SUMMARY), *[record_text(EMPTY)] * 2) as client:
            compacted = orjson.loads((await self.compact(client, input="x")).content)
            self.assertEqual(compacted["output"][-1]["type"], "compaction")
            first, second = self.engine.requests
            self.assertIn("Reasoning: low", ENCODING.decode(list(second.prompt)))
            self.assertNotIn("Reasoning: low", ENCODING.decode(list(first.prompt)))
            self.assertEqual(compacted["usage"]["input_tokens"], len(first.prompt) + len(second.prompt))
            self.refused(await self.compact(client, input="x"), 500, "server_error", None, "another model")


def test_only_what_others_said_is_told_from_before_the_newest_summary() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "id": text, "role": role, "content": [{"type": "input_text", "text": text}]}

    def summary(text: str) -> dict[str, Any]:
        return {"type": "compaction", "id": text, "encrypted_content": "x", "summary": text}

    items = [
        message("system", "a"),
        {"type": "additional_tools", "id": "t", "role": "developer", "tools": []},
        summary("b"),
        message("user", "c"),
        message("assistant", "d"),
        {"type": "function_call", "id": "e", "call_id": "1"},
        {"type": "function_call", "id": "f", "call_id": "2"},
        {"type": "function_call_output", "id": "g", "call_id": "1"},
        {"type": "reasoning", "id": "h"},
        summary("i"),
        {"type": "function_call_output", "id": "j", "call_id": "2"},
        message("assistant", "k"),
        {"type": "compaction", "id": "l", "encrypted_content": "cannot be read"},
    ]
    assert [item["id"] for item in apply_compaction(items)] == ["a", "t", "c", "f", "i", "j", "k"]
    assert apply_compaction(items)[4]["role"] == "developer"
    plain = [message("user", "a"), message("assistant", "b")]
    assert apply_compaction(plain) == plain


class TriggerTest(ApiCase):
    """`compaction_trigger`: a response that is a compaction and nothing else."""

    async def test_trigger_replaces_earlier_items_and_is_not_stored(self) -> None:
        trigger = {"type": "compaction_trigger"}
        async with self.serving(record_text(HELLO), record_text(SUMMARY), record_text(HELLO)) as client:
            first = await self.made(client, input="I am Ada.")
            fields = {"input": [{"role": "user", "content": "Teal."}, trigger], "previous_response_id": first["id"]}
            events = await self.stream(client, **fields, tools=[TOOL], tool_choice="required")
            made = events[-1]["response"]
            self.assertEqual((made["status"], [item["type"] for item in made["output"]]), ("completed", ["compaction"]))
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for text in ("I am Ada.", "Teal.", "Summarize our conversation"):
                with self.subTest(text=text):
                    self.assertIn(text, prompt)
            listed = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items")).content)["data"]
            self.assertNotIn("compaction_trigger", [item["type"] for item in listed])
            await self.made(client, input=[*made["output"], {"role": "user", "content": "Who am I?"}])
            self.assertIn("Ada likes teal.", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_trigger_without_a_summary_fails(self) -> None:
        async with self.serving(*[record_text(EMPTY)] * 2) as client:
            asked = [{"role": "user", "content": "Teal."}, {"type": "compaction_trigger"}]
            self.refused(await self.post(client, input=asked), 500, "server_error", None, "another model")
            events = await self.stream(client, input=asked)
            self.assertEqual((events[-1]["type"], events[-1]["response"]["output"]), ("response.failed", []))

    async def test_trigger_must_be_the_last_item_of_a_request(self) -> None:
        trigger, message = {"type": "compaction_trigger"}, {"role": "user", "content": "Hi"}
        async with self.serving() as client:
            for body in ([trigger, message], [trigger, trigger]):
                self.refused(await self.post(client, input=body), 400, "invalid_value", "input[0]")
            items = orjson.dumps({"items": [message, trigger]})
            response = await client.post("/v1/conversations", items, content_type="application/json")
            self.refused(response, 400, "invalid_value", "items[1]")


class AutomaticTest(ApiCase):
    """`context_management`: the response that crosses the threshold ends with a compaction."""

    def managed(self, threshold: int = 1000) -> dict[str, Any]:
        """The field."""
        return {"context_management": [{"type": "compaction", "compact_threshold": threshold}]}

    async def test_past_the_threshold_it_comes_last_and_the_next_turn_is_shorter(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(SUMMARY), record_text(HELLO)) as client:
            below = await self.stream(client, input="I am Ada.", **self.managed())
            first = below[-1]["response"]
            self.assertEqual([item["type"] for item in first["output"]], ["message"])
            call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
            output = {"type": "function_call_output", "call_id": "c", "output": "sunny " * 1000}
            events = await self.stream(client, input=[call, output], previous_response_id=first["id"], **self.managed())
            second = events[-1]["response"]
            self.assertEqual([item["type"] for item in second["output"]], ["message", "compaction"])
            self.assertIn("sunny", ENCODING.decode(list(self.engine.requests[-1].prompt)))
            self.assertGreater(second["usage"]["output_tokens"], first["usage"]["output_tokens"])
            again = orjson.loads((await client.get(f"/v1/responses/{second['id']}")).content)
            self.assertEqual(again, second)
            response = await self.post(client, input="Who am I?", previous_response_id=second["id"], **self.managed())
            third = orjson.loads(response.content)
            self.assertLess(third["usage"]["input_tokens"], 300)
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for text in ("I am Ada.", "Ada likes teal.", "Who am I?"):
                with self.subTest(text=text):
                    self.assertIn(text, prompt)
            self.assertNotIn("sunny", prompt)

    async def test_without_a_threshold_it_is_a_part_of_the_window(self) -> None:
        context_management: Any = [{"type": "compaction"}]
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(SUMMARY)) as client:
            self.engine._max_model_len = 1000
            for words, kinds in ((100, ["message"]), (800, ["message", "compaction"])):
                with self.subTest(words=words, kinds=kinds):
                    response = await self.post(client, input="word " * words, context_management=context_management)
                    self.assertEqual([item["type"] for item in orjson.loads(response.content)["output"]], kinds)

    async def test_without_a_summary_the_response_is_complete_all_the_same(self) -> None:
        async with self.serving(record_text(HELLO), *[record_text(EMPTY)] * 2) as client:
            made = orjson.loads((await self.post(client, input="word " * 1200, **self.managed())).content)
            self.assertEqual((made["status"], [item["type"] for item in made["output"]]), ("completed", ["message"]))

    async def test_invalid_context_management_is_refused_by_path(self) -> None:
        async with self.serving() as client:
            for value, code, param in (
                ([], "array_below_min_length", "context_management"),
                (
                    [{"type": "compaction", "compact_threshold": 999}],
                    "integer_below_min_value",
                    "context_management[0].compact_threshold",
                ),
                ([{"type": "magic", "compact_threshold": 1000}], "invalid_value", "context_management[0].type"),
                ("auto", "invalid_type", "context_management"),
            ):
                self.refused(await self.post(client, context_management=value), 400, code, param)
