"""Compaction: the messages of the user stay, a sealed summary stands for the rest, and the next turn is told both."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from openai.types.responses import CompactedResponse

from responses_app.models import ApiKey, Event, Item, Response
from responses_app.runs.context import folded
from tests.api.case import ENCODING, HELLO, TOOL, WEATHER, ApiCase, said

SUMMARY = (
    "<|channel|>analysis<|message|>Keep it short.<|end|><|start|>assistant<|channel|>final<|message|>Ada likes teal.<|return|>"
)


class CompactTest(ApiCase):
    """With a scripted engine and the real database."""

    async def compact(self, client: AsyncClient, **body: Any) -> Any:
        """POST /v1/responses/compact."""
        return await client.post("/v1/responses/compact", orjson.dumps({"model": "m", **body}), content_type="application/json")

    async def test_what_it_gives_is_the_input_of_the_next_turn(self) -> None:
        async with self.serving(said(WEATHER), said(HELLO), said(SUMMARY), said(HELLO)) as client:
            first = orjson.loads((await self.post(client, input="I am Ada.", tools=[TOOL])).content)
            result = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "sunny"}
            second = orjson.loads(
                (await self.post(client, input=[result], previous_response_id=first["id"], tools=[TOOL])).content
            )
            rows = await Response.objects.acount(), await Item.objects.acount(), await Event.objects.acount()
            answer = await self.compact(client, input="I like teal.", previous_response_id=second["id"])
            self.assertEqual(answer.status_code, 200, answer.content)
            compacted = orjson.loads(answer.content)
            CompactedResponse.model_validate(compacted, strict=True)
            self.assertEqual((await Response.objects.acount(), await Item.objects.acount(), await Event.objects.acount()), rows)
            asked = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for told in ("I am Ada.", "sunny", "Hello there!", "I like teal.", "Summarize our conversation"):
                self.assertIn(told, asked)
            *messages, last = compacted["output"]
            self.assertEqual([m["content"][0]["text"] for m in messages], ["I am Ada.", "I like teal."])
            self.assertEqual(set(last), {"id", "type", "encrypted_content"})
            self.assertNotIn("teal", last["encrypted_content"])
            go_on = [*compacted["output"], {"role": "user", "content": "Who am I?"}]
            third = await self.post(client, input=go_on)
            self.assertEqual(third.status_code, 200, third.content)
            prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
            for told in ("I am Ada.", "Ada likes teal.", "Who am I?"):
                self.assertIn(told, prompt)
            self.assertNotIn("sunny", prompt)
            uid = orjson.loads(third.content)["id"]
            listed = orjson.loads((await client.get(f"/v1/responses/{uid}/input_items?order=asc")).content)["data"]
            self.assertEqual(listed[-2], last)

    async def test_a_token_of_another_project_or_kind_is_refused(self) -> None:
        _, secret = await sync_to_async(ApiKey.make)("other")
        async with self.serving(said(SUMMARY)) as client:
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

    async def test_what_is_wrong_is_named(self) -> None:
        empty = HELLO.replace("Hello there!", "")
        async with self.serving(said(empty)) as client:
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
            self.refused(await self.compact(client, input="x"), 500, "server_error", None, "summary")


def test_only_what_others_said_is_told_from_before_the_newest_summary() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "id": text, "role": role, "content": [{"type": "input_text", "text": text}]}

    def summary(text: str) -> dict[str, Any]:
        return {"type": "compaction", "id": text, "encrypted_content": "x", "summary": text}

    items = [
        message("system", "a"),
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
    assert [item["id"] for item in folded(items)] == ["a", "c", "f", "i", "j", "k"]
    assert folded(items)[3]["role"] == "developer"
    plain = [message("user", "a"), message("assistant", "b")]
    assert folded(plain) == plain
