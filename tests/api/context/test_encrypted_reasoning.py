"""Encrypted reasoning: sealed for a project, opened again before the model reads it, refused if it is not ours."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import override_settings

from responses_app.access import api_keys
from responses_app.models import ApiKey, Event, Item, Response
from responses_app.runs.prepare import encrypted_content
from tests.support.api.case import ENCODING, HELLO, THOUGHT, TOOL, WEATHER, ApiCase, record_text

ASK = {"include": ["reasoning.encrypted_content"]}
USER = {"role": "user", "content": "Hi"}


def reasoning(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The only reasoning item among these."""
    (reasoning_item,) = [item for item in items if item["type"] == "reasoning"]
    return reasoning_item


class SealedTest(ApiCase):
    """With a scripted engine and the real database."""

    def prompt(self) -> str:
        """Return the last prompt of the engine as text."""
        text: str = ENCODING.decode_utf8(list(self.engine.requests[-1].prompt))
        return text

    async def get(self, client: Any, path: str) -> Any:
        """The JSON at a path below /v1/responses."""
        response = await client.get(f"/v1/responses/{path}")
        self.assertEqual(response.status_code, 200, response.content)
        return orjson.loads(response.content)

    async def test_encrypted_content_is_the_same_in_done_event_and_response(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            events = await self.stream(client, **ASK)
            by_type = {event["type"]: event for event in events if event.get("output_index", 0) == 0}
            self.assertNotIn("encrypted_content", by_type["response.output_item.added"]["item"])
            token = by_type["response.output_item.done"]["item"]["encrypted_content"]
            end = by_type["response.completed"]["response"]
            self.assertEqual(reasoning(end["output"])["encrypted_content"], token)
            self.assertNotIn("They greet me.", token)
            self.assertEqual(await self.get(client, end["id"]), end)
            self.assertEqual(await self.get(client, f"{end['id']}?include[]=reasoning.encrypted_content"), end)

    async def test_without_the_include_there_is_no_such_key_until_it_is_asked_for(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            first = await self.made(client)
            self.assertNotIn("encrypted_content", reasoning(first["output"]))
            included = await self.get(client, f"{first['id']}?include=reasoning.encrypted_content")
            self.assertEqual(
                encrypted_content.decrypt("test", reasoning(included["output"])["encrypted_content"]), ["They greet me."]
            )

    async def test_given_back_without_its_text_it_reaches_the_model_as_raw_reasoning(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO)) as client:
            first = await self.made(client, store=False, tools=[TOOL], **ASK)
            thought, call = first["output"]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            bare = {**thought, "content": [], "summary": []}
            await self.made(client, store=False, tools=[TOOL], input=[USER, bare, call, output], **ASK)
            self.assertIn("<|channel|>analysis<|message|>I need the tool.<|end|>", self.prompt())
            self.assertEqual(await Response.objects.acount() + await Item.objects.acount(), 0)

    async def test_a_chain_goes_on_from_sealed_input(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, store=False, tools=[TOOL], **ASK)
            thought, call = first["output"]
            bare = {"type": "reasoning", "summary": [], "encrypted_content": thought["encrypted_content"]}
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            # No final answer follows the reasoning, so that the model is told of it again.
            second = await self.made(client, tools=[TOOL], input=[USER, bare, call, output])
            await self.made(client, input=[{"type": "item_reference", "id": second["output"][0]["id"]}, bare, USER])
            self.assertIn("I need the tool.", self.prompt())
            path = f"{second['id']}/input_items"
            self.assertNotIn("encrypted_content", reasoning((await self.get(client, path))["data"]))
            listed = await self.get(client, f"{path}?include=reasoning.encrypted_content")
            self.assertEqual(reasoning(listed["data"])["encrypted_content"], thought["encrypted_content"])

    async def test_history_that_was_stored_sealed_is_opened_and_another_server_key_does_not_end_it(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(WEATHER), record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, store=False, tools=[TOOL], **ASK)
            bare = {"type": "reasoning", "summary": [], "encrypted_content": first["output"][0]["encrypted_content"]}
            second = await self.made(client, tools=[TOOL], input=[USER, bare])
            output = {"type": "function_call_output", "call_id": second["output"][1]["call_id"], "output": "sunny"}
            await self.made(client, tools=[TOOL], input=[output], previous_response_id=second["id"])
            self.assertEqual(self.prompt().count("I need the tool."), 2)
            with override_settings(SECRET_KEY="another"):
                await ApiKey.objects.filter(pk=self.key.pk).aupdate(digest=ApiKey.hash(self.secret))
                api_keys.clear_cache()
                await self.made(client, tools=[TOOL], input=[output], previous_response_id=second["id"])
            self.assertEqual(self.prompt().count("I need the tool."), 1)

    async def test_altered_foreign_and_made_up_tokens_are_refused_before_anything_runs(self) -> None:
        item = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
        good = encrypted_content.encrypt("test", item)
        bad = [
            encrypted_content.encrypt("other", item),
            good[:-6] + ("A" if good[-6] != "A" else "B") + good[-5:],
            good[:9] + ("A" if good[9] != "A" else "B") + good[10:],
            good + "\n",
            good[:10] + "!" + good[10:],
            good[:14] + ("A" if good[14] != "A" else "B") + good[15:],
            good.removeprefix("v2."),
            good.removeprefix(good[:12]),
            "v1." + good[12:],
            f"v2.00000000.{good[12:]}",
            "v1.",
            "v2.",
            "v2..",
            "v1.AAAA",
            f"{good[:12]}AAAA",
            "gAAAAABnothing",
            "é\0",
        ]
        async with self.serving() as client:
            for token in bad:
                for stream in (False, True):
                    response = await self.post(client, stream=stream, input=[USER, {**item, "encrypted_content": token}])
                    self.refused(
                        response, 400, "invalid_encrypted_content", "input[1].encrypted_content", "could not be verified"
                    )
            self.assertEqual(await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount(), 0)

    async def test_encrypted_content_outranks_the_text_beside_it(self) -> None:
        item = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Sealed."}]}
        forged = {
            **item,
            "encrypted_content": encrypted_content.encrypt("test", item),
            "content": [{"type": "reasoning_text", "text": "No."}],
        }
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client, input=[USER, forged])
            self.assertIn("<|message|>Sealed.<|end|>", self.prompt())

    async def test_another_projects_key_cannot_use_it(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            first = await self.made(client, **ASK)
            _, secret = await sync_to_async(ApiKey.make)("other")
            response = await client.post(
                "/v1/responses",
                orjson.dumps({"model": "m", "input": [reasoning(first["output"]), USER]}),
                content_type="application/json",
                headers={"Authorization": f"Bearer {secret}"},
            )
            self.refused(response, 400, "invalid_encrypted_content", "input[0].encrypted_content")

    async def test_a_cut_thought_is_sealed_too_and_a_model_without_thoughts_is_not_disturbed(self) -> None:
        async with self.serving(
            record_text("<|channel|>analysis<|message|>I wonder", finish="length"), record_text(HELLO)
        ) as client:
            cut = await self.made(client, **ASK)
            self.assertEqual(encrypted_content.decrypt("test", cut["output"][0]["encrypted_content"]), ["I wonder"])
            self.assertEqual([item["type"] for item in (await self.made(client, **ASK))["output"]], ["message"])

    async def test_include_is_read_on_get_and_input_items(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
            for path in (uid, f"{uid}/input_items"):
                await self.get(client, f"{path}?include[]=message.output_text.logprobs&include[]=web_search_call.results")
                response = await client.get(f"/v1/responses/{path}?include[]=web_search_call.results&include[]=nope")
                self.refused(response, 400, "invalid_value", "include[1]", "'reasoning.encrypted_content'")
