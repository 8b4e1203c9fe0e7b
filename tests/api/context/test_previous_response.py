"""previous_response_id: whole items go on, instructions do not, and pairs of calls and outputs are checked."""

from __future__ import annotations

import orjson
from asgiref.sync import sync_to_async

from responses_app.models import ApiKey
from tests.support.api.case import ENCODING, HELLO, TOOL, WEATHER, ApiCase, KeyedClient, record_text


class ChainTest(ApiCase):
    """With a scripted engine and the real database."""

    def prompt(self, index: int = -1) -> str:
        """Return the prompt of the engine as text."""
        text: str = ENCODING.decode_utf8(list(self.engine.requests[index].prompt))
        return text

    async def test_reasoning_of_earlier_turns_is_told_as_asked(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO), *[record_text(HELLO)] * 8) as client:
            first = await self.made(client, input="Weather in Paris?", tools=[TOOL])
            output = {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "sunny"}
            for context, has_reasoning in ((None, True), ("auto", True), ("current_turn", True), ("all_turns", True)):
                with self.subTest(context=context):
                    chosen = {"input": [output], "previous_response_id": first["id"], "reasoning": {"context": context}}
                    second = await self.made(client, tools=[TOOL], **chosen)
                    self.assertEqual("I need the tool." in self.prompt(), has_reasoning)
            for context, has_reasoning in ((None, False), ("auto", False), ("current_turn", False), ("all_turns", True)):
                with self.subTest(context=context):
                    await self.made(client, previous_response_id=second["id"], reasoning={"context": context})
                    self.assertEqual("I need the tool." in self.prompt(), has_reasoning)
            self.engine._tape.clear()

    async def test_reasoning_calls_and_outputs_all_reach_the_model_again(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, input="Weather in Paris?", tools=[TOOL])
            call = first["output"][1]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny, 21 degrees"}
            second = await self.made(client, input=[output], tools=[TOOL], previous_response_id=first["id"])
            for part in ("Weather in Paris?", "I need the tool.", '{"city":"Paris"}', "sunny, 21 degrees"):
                with self.subTest(part=part):
                    self.assertIn(part, self.prompt())
            await self.made(client, input="Thanks", previous_response_id=second["id"])
            self.assertIn("Hello there!", self.prompt())
            self.assertIn("sunny, 21 degrees", self.prompt())

    async def test_stored_item_outranks_the_sent_item_of_its_id(self) -> None:
        """A client that stored only the id of its reasoning loses nothing, and an old message stays the same."""
        async with self.serving(record_text(WEATHER), record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, input="Weather in Paris?", tools=[TOOL])
            thought, call = first["output"]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            replayed = [{"type": "reasoning", "id": thought["id"], "summary": []}, {**call, "arguments": "{}"}, output]
            second = await self.made(
                client, input=[{"role": "user", "content": "Weather?"}, *replayed], tools=[TOOL], store=False
            )
            self.assertIn("I need the tool.", self.prompt())
            self.assertIn('{"city":"Paris"}', self.prompt())
            old = {**second["output"][-1], "content": [{"type": "output_text", "text": "Something else."}]}
            await self.made(client, input=[old, {"role": "user", "content": "And?"}])
            self.assertIn("Something else.", self.prompt())  # it was never stored
            item = (await self.made(client, input="Hi"))["output"][-1]
            path = "/v1/responses/input_tokens"
            counts = set()
            for text in ("Something else that is much longer.", item["content"][0]["text"]):
                body = {"model": "m", "input": [{**item, "content": text}, {"role": "user", "content": "And?"}]}
                answer = await client.post(path, orjson.dumps(body), content_type="application/json")
                counts.add(orjson.loads(answer.content)["input_tokens"])
            self.assertEqual(len(counts), 1)

    async def test_stored_items_of_other_projects_have_no_effect(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            item = (await self.made(client))["output"][-1]
            _, secret = await sync_to_async(ApiKey.make)("other", project="other")
            stranger = KeyedClient(secret)
            await self.made(stranger, input=[{**item, "content": "My own words."}, {"role": "user", "content": "And?"}])
            self.assertIn("My own words.", self.prompt())

    async def test_instructions_are_not_inherited(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, instructions="Talk like a pirate.")
            second = await self.made(client, previous_response_id=first["id"])
            self.assertIn("pirate", self.prompt(0))
            self.assertNotIn("pirate", self.prompt(1))
            self.assertIsNone(second["instructions"])

    async def test_two_children_of_one_parent_are_independent(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            root = await self.made(client, input="root")
            await self.made(client, input="left", previous_response_id=root["id"])
            await self.made(client, input="right", previous_response_id=root["id"])
            self.assertIn("root", self.prompt())
            self.assertNotIn("left", self.prompt())

    async def test_a_call_without_output_and_an_output_without_call_are_refused_and_leave_nothing(self) -> None:
        async with self.serving(record_text(WEATHER)) as client:
            first = await self.made(client, tools=[TOOL])
            unanswered = await self.post(client, input="And now?", previous_response_id=first["id"])
            self.refused(unanswered, 400, None, "input", "No tool output found for function call call_")
            orphan = await self.post(client, input=[{"type": "function_call_output", "call_id": "call_x", "output": "1"}])
            self.refused(orphan, 400, None, "input", "No tool call found for function call output with call_id call_x.")

    async def test_input_items_list_history_and_own_input_in_pages(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            first = await self.made(client, input="one")
            second = await self.made(client, input=[{"role": "user", "content": "two"}], previous_response_id=first["id"])
            url = f"/v1/responses/{second['id']}/input_items"
            page = orjson.loads((await client.get(url)).content)
            texts = [item["content"][0]["text"] for item in page["data"]]
            self.assertEqual(texts, ["two", "Hello there!", "one"])
            self.assertEqual((page["object"], page["has_more"], page["last_id"]), ("list", False, page["data"][-1]["id"]))
            seen, after = [], ""
            while True:
                page = orjson.loads((await client.get(f"{url}?order=asc&limit=1{after}")).content)
                seen += [item["content"][0]["text"] for item in page["data"]]
                if not page["has_more"]:
                    break
                after = f"&after={page['last_id']}"
            self.assertEqual(seen, texts[::-1])
            self.refused(await client.get(f"{url}?limit=0"), 400, "integer_below_min_value", "limit")
            self.refused(await client.get(f"{url}?limit=101"), 400, "integer_above_max_value", "limit")
            self.refused(await client.get(f"{url}?after=msg_x"), 404, None, "after", "No item found with id 'msg_x'")

    async def test_deleting_the_parent_leaves_the_child_readable_and_continuable(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first = await self.made(client, input="one")
            second = await self.made(client, input="two", previous_response_id=first["id"])
            gone = await client.delete(f"/v1/responses/{first['id']}")
            self.assertEqual(orjson.loads(gone.content), {"id": first["id"], "object": "response", "deleted": True})
            self.refused(await client.get(f"/v1/responses/{first['id']}"), 404, None, None)
            self.refused(await client.delete(f"/v1/responses/{first['id']}"), 404, None, None)
            await self.made(client, input="three", previous_response_id=second["id"])
            self.assertIn("one", self.prompt())

    async def test_another_project_sees_nothing(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            mine = await self.made(client)
            _, secret = await sync_to_async(ApiKey.make)("other")
            headers = {"Authorization": f"Bearer {secret}"}
            for method, path in (("get", ""), ("get", "?stream=true"), ("delete", ""), ("get", "/input_items")):
                response = await getattr(client, method)(f"/v1/responses/{mine['id']}{path}", headers=headers)
                self.refused(response, 404, None, None)
            response = await client.post(
                "/v1/responses",
                orjson.dumps({"model": "m", "input": "x", "previous_response_id": mine["id"]}),
                content_type="application/json",
                headers=headers,
            )
            self.refused(response, 400, "previous_response_not_found", "previous_response_id")

    async def test_an_id_of_another_kind_gets_a_hint(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            made = await self.made(client)
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            path = "/v1/chat/completions"
            stored = orjson.loads((await client.post(path, {**body, "store": True}, content_type="application/json")).content)
            lost = orjson.loads((await client.post(path, body, content_type="application/json")).content)
            response_id = stored["id"].replace("chatcmpl-", "resp_")
            hints = {
                stored["id"]: f" Send the id of its response: '{response_id}'.",
                stored["id"].replace("chatcmpl-", "msg_"): f" Send the id of its response: '{response_id}'.",
                made["output"][0]["id"]: f" Send the id of its response: '{made['id']}'.",
                lost["id"]: " if its request had 'store': true.",
                lost["id"].replace("chatcmpl-", "msg_"): " Its response was not stored, so it cannot be continued.",
                "conv_1": " send it as 'conversation'.",
                "msg_1": " The id of a response begins with 'resp_'.",
                "resp_1": " not found.",
            }
            for uid, hint in hints.items():
                request = {"model": "m", "input": "x", "previous_response_id": uid}
                response = await client.post("/v1/responses", request, content_type="application/json")
                self.refused(response, 400, "previous_response_not_found", "previous_response_id")
                message = orjson.loads(response.content)["error"]["message"]
                assert message.startswith(f"Previous response with id '{uid}' not found.")
                assert message.endswith(hint)
