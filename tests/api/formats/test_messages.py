"""POST /v1/messages and /v1/messages/count_tokens, with a scripted engine and the real database."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import orjson
from django.test import AsyncClient, override_settings

from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import CreateRequest
from tests.support.api.case import ENCODING, HARMONY, THOUGHT, TOOL, WEATHER, record_text
from tests.support.api_formats import anthropic_types
from tests.support.api_formats.messages_case import HI, PATH, MessagesCase, shown
from tests.support.runs.server_tools import shows

WEATHER_TOOL = {"name": "get_weather", "description": TOOL["description"], "input_schema": TOOL["parameters"]}
SHOWN = {"thinking": {"type": "enabled", "budget_tokens": 2048}}


class MessagesTest(MessagesCase):
    """Messages of a scripted model in the harmony format."""

    async def test_thinking_is_shown_if_the_request_asks_for_it(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            plain = await self.message(client)
            self.assertEqual([block["type"] for block in plain["content"]], ["text"])
            made = await self.message(client, **SHOWN)
            thought, text = made["content"]
            self.assertEqual((thought["thinking"], text["text"]), ("They greet me.", "Hello there!"))
            self.assertTrue(thought["signature"])
            self.assertEqual((made["stop_reason"], made["role"]), ("end_turn", "assistant"))
            events = await self.events(client, **SHOWN)
            self.assertEqual((events[0]["type"], events[-1]["type"]), ("message_start", "message_stop"))
            self.assertEqual(events[0]["message"]["usage"]["input_tokens"], made["usage"]["input_tokens"])
            self.assertEqual(events[-2]["usage"], made["usage"])
            deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
            self.assertEqual("".join(one.get("text", "") for one in deltas), "Hello there!")
            self.assertEqual("".join(one.get("thinking", "") for one in deltas), "They greet me.")

    async def test_disabled_thinking_is_the_lowest_effort_of_a_model_that_always_reasons(self) -> None:
        low, high = ({"output_config": {"effort": effort}} for effort in ("low", "high"))
        off = {"thinking": {"type": "disabled"}}
        async with self.serving(*[record_text(THOUGHT)] * 4) as client:
            for body in (off, low, {**off, **high}, high):
                made = await self.message(client, **body)
                self.assertEqual([block["type"] for block in made["content"]], ["text"])
            prompts = [request.prompt for request in self.engine.requests]
            self.assertEqual((prompts[0], prompts[2]), (prompts[1], prompts[3]))
            counted = orjson.loads((await self.send(client, f"{PATH}/count_tokens", **off)).content)
            self.assertEqual(counted, {"input_tokens": len(prompts[0])})

    async def test_disabled_thinking_holds_beside_an_effort_for_a_model_that_can_leave_it_out(self) -> None:
        with patch.object(HARMONY, "efforts", ("none", "medium")), override_settings(RESPONSES_DEFAULT_MODEL="m"):
            async with self.serving() as client:
                body: dict[str, Any] = {"model": None, "thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}
                refused = await self.send(client, **body)
                self.assertIn("'none' is not supported", orjson.loads(refused.content)["error"]["message"])

    async def test_a_call_and_its_result(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(THOUGHT)) as client:
            made = await self.message(client, tools=[WEATHER_TOOL], **SHOWN)
            thought, call = made["content"]
            self.assertEqual((made["stop_reason"], call["name"], call["input"]), ("tool_use", "get_weather", {"city": "Paris"}))
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "sunny"}]}
            messages = [*HI, {"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}]
            again = await self.message(client, tools=[WEATHER_TOOL], messages=messages)
            self.assertEqual(again["content"][0]["text"], "Hello there!")

    async def test_names_of_tools_have_up_to_128_characters(self) -> None:
        """Claude Code joins the names of a plugin, an MCP server and a tool."""
        name = f"mcp__plugin_{'x' * 116}"
        tool = {**WEATHER_TOOL, "name": name}
        call = WEATHER.replace("functions.get_weather", f"functions.{name}")
        async with self.serving(record_text(call), record_text(THOUGHT)) as client:
            made = await self.message(client, tools=[tool], tool_choice={"type": "tool", "name": name})
            self.assertEqual([block["name"] for block in made["content"]], [name])
            result = {"type": "tool_result", "tool_use_id": made["content"][0]["id"], "content": "sunny"}
            turns = [*HI, {"role": "assistant", "content": made["content"]}, {"role": "user", "content": [result]}]
            await self.message(client, tools=[tool], messages=turns)
            refused = await self.send(client, tools=[{**tool, "name": f"{name}x"}])
            self.assertEqual(refused.status_code, 400)
            self.assertIn("'tools[0].name': string too long", orjson.loads(refused.content)["error"]["message"])

    @override_settings(RESPONSES_STORE_API_FORMATS=True)
    async def test_the_stop_sequence_that_ends_a_message_is_named(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            made = await self.message(client, stop_sequences=["zz", " there"])
            self.assertEqual((made["stop_reason"], made["stop_sequence"]), ("stop_sequence", " there"))
            self.assertEqual(made["content"][0]["text"], "Hello")
            events = await self.events(client, stop_sequences=["zz", " there"])
            self.assertEqual(events[-2]["delta"], {"stop_reason": "stop_sequence", "stop_sequence": " there"})
            uid = made["id"].replace("msg_", "resp_")
            response = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
            self.assertEqual((response["status"], response["stop_sequence"]), ("completed", " there"))
            other = await self.message(client, stop_sequences=["zz"])
            self.assertEqual((other["stop_reason"], other["stop_sequence"]), ("end_turn", None))

    async def test_a_message_has_the_prompt_of_the_response_with_the_same_meaning(self) -> None:
        messages: list[Any] = [
            {"role": "user", "content": [{"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I ask.", "signature": "of another server"},
                    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
        ]
        items: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "I ask."}]},
            {"type": "function_call", "call_id": "toolu_1", "name": "get_weather", "arguments": '{"city":"Paris"}'},
            {"type": "function_call_output", "call_id": "toolu_1", "output": "sunny"},
        ]
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            system = [{"type": "text", "text": "Be brief."}]
            config = {"output_config": {"effort": "low"}, "stop_sequences": ["zz"], "top_k": 7}
            await self.message(client, system=system, messages=messages, tools=[WEATHER_TOOL], **config)
            tools = [{**TOOL, "strict": False}]
            await self.made(
                client, input=items, tools=tools, reasoning={"effort": "low"}, max_output_tokens=100, stop="zz", top_k=7
            )
            of_messages, of_response = self.engine.requests
            self.assertEqual(of_messages.prompt, of_response.prompt)
            self.assertEqual(of_messages.sampling, of_response.sampling)
            self.assertEqual(of_messages.sampling.top_k, 7)

    async def test_an_empty_message_of_the_user_is_a_part_of_the_prompt(self) -> None:
        contents: list[Any] = ["", [], [{"type": "text", "text": ""}]]
        async with self.serving(*[record_text(THOUGHT)] * 4) as client:
            for content in contents:
                await self.message(client, messages=[{"role": "user", "content": content}])
            await self.made(client, input=[{"role": "user", "content": ""}])
        self.assertEqual(len({tuple(request.prompt) for request in self.engine.requests}), 1)

    async def test_the_name_of_a_schema_is_its_title(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
        async with self.serving(*[record_text(THOUGHT)] * 4) as client:
            for title, name in (("Person", "Person"), ("Two words", "output")):
                titled = {**schema, "title": title}
                text_format = {"type": "json_schema", "name": name, "schema": titled, "strict": True}
                await self.message(client, output_config={"format": {"type": "json_schema", "schema": titled}})
                await self.made(client, input="Hi", text={"format": text_format})
                of_messages, of_response = self.engine.requests[-2:]
                self.assertEqual(of_messages.prompt, of_response.prompt)

    async def test_schemas_need_not_follow_the_strict_mode_of_responses(self) -> None:
        optional = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
        for schema in (optional, {"type": "array", "items": optional}, {"anyOf": [optional, {"allOf": [optional]}]}):
            async with self.serving(record_text(THOUGHT)) as client:
                await self.message(client, output_config={"format": {"type": "json_schema", "schema": schema}})
                self.assertIn(orjson.dumps(optional), orjson.dumps(self.engine.requests[-1].constraint))
        tool = {"name": "f", "input_schema": {**optional, "oneOf": [{"type": "object"}]}}
        async with self.serving(*[record_text(THOUGHT)] * 2) as client:
            for strict in (True, False):
                await self.message(client, tools=[{**tool, "strict": strict}])
            constraints = [request.constraint for request in self.engine.requests[-2:]]
            self.assertIn(b"oneOf", orjson.dumps(constraints[0]))
            self.assertNotIn(b"oneOf", orjson.dumps(constraints[1]))

    async def test_the_format_of_an_earlier_beta_is_the_same(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
        output = {"type": "json_schema", "schema": schema}
        async with self.serving(*[record_text(THOUGHT)] * 2) as client:
            await self.message(client, output_config={"format": output})
            await self.message(client, output_format=output)
            now, before = self.engine.requests
            self.assertEqual((now.prompt, now.constraint), (before.prompt, before.constraint))
            self.assertIsNotNone(before.constraint)
            for wrong, path in (
                ({"output_format": {**output, "x": 1}}, "'output_format.x'"),
                (
                    {"output_format": output, "output_config": {"format": output}},
                    "Mutually exclusive parameters: 'output_format'",
                ),
            ):
                answer = await self.send(client, **wrong)
                self.assertEqual(answer.status_code, 400)
                self.assertIn(path, orjson.loads(answer.content)["error"]["message"])

    async def test_calls_have_the_blanks_that_the_model_writes(self) -> None:
        call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris", "days": [1, 2]}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
        messages = [*HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        for written, arguments in (
            ("compact", '{"city":"Paris","days":[1,2]}'),
            ("spaced", '{"city": "Paris", "days": [1, 2]}'),
        ):
            async with self.serving(record_text(THOUGHT)) as client:
                with self.subTest(written=written), override_settings(RESPONSES_JSON_WHITESPACE=written):
                    await self.message(client, tools=[WEATHER_TOOL], messages=messages)
                    self.assertIn(arguments, ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_deferred_tools_are_offered_once_a_result_refers_to_them(self) -> None:
        search = {"name": "ToolSearch", "input_schema": {"type": "object"}}
        deferred = {**WEATHER_TOOL, "defer_loading": True}
        call = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
        reference = {"type": "tool_reference", "tool_name": "get_weather"}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]}
        searched = [*HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        texts = [*searched[:-1], {"role": "user", "content": [{**result, "content": "The tool get_weather is loaded.\n"}]}]
        async with self.serving(*[record_text(THOUGHT)] * 4) as client:
            for messages, tools in (
                (HI, [deferred, search]),
                (HI, [search]),
                (searched, [deferred, search]),
                (texts, [WEATHER_TOOL, search]),
            ):
                await self.message(client, messages=messages, tools=tools)
            unloaded, without, loaded, with_tool = (request.prompt for request in self.engine.requests)
            self.assertEqual((unloaded, loaded), (without, with_tool))
            refused = await self.send(client, tools=[deferred, {**search, "input_schema": {"type": "array"}}])
            self.assertIn("tools[1].input_schema", orjson.loads(refused.content)["error"]["message"])

    async def test_statistics_of_claude_code_are_no_part_of_the_prompt(self) -> None:
        statistics = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.d1e; cc_entrypoint=cli;"}
        async with self.serving(*[record_text(THOUGHT)] * 2) as client:
            for more in ([], [statistics]):
                await self.message(client, system=[*more, {"type": "text", "text": "Be brief."}])
            self.assertEqual(self.engine.requests[0].prompt, self.engine.requests[1].prompt)

    async def test_search_results_are_text_of_the_prompt(self) -> None:
        texts = [{"type": "text", "text": "It rains."}, {"type": "text", "text": "A lot."}]
        result = {
            "type": "search_result",
            "source": "https://x",
            "title": "Oslo",
            "content": texts,
            "citations": {"enabled": True},
        }
        match = shows("Oslo\nhttps://x\nIt rains.\nA lot.\n")
        async with self.serving(*[record_text(THOUGHT, match=match)] * 2) as client:
            question = {"role": "user", "content": [result, result]}
            for body in (
                {"messages": [question]},
                shown({"type": "tool_result", "tool_use_id": "a", "content": [result, result]}),
            ):
                self.assertEqual((await self.message(client, **body))["content"][0]["text"], "Hello there!")
            wrong = {**result, "content": [{"type": "image"}]}
            error = orjson.loads((await self.send(client, messages=[{"role": "user", "content": [wrong]}])).content)["error"]
            self.assertIn("messages[0].content[0].content[0].type", error["message"])

    async def test_a_key_may_come_in_x_api_key(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            client.secret = "sk-wrong"
            refused = await self.send(client)
            self.assertEqual(refused.status_code, 401)
            self.assertEqual(orjson.loads(refused.content)["error"]["type"], "authentication_error")
            data = orjson.dumps({"model": "m", "max_tokens": 100, "messages": HI})
            accepted = await AsyncClient().post(PATH, data, content_type="application/json", headers={"x-api-key": self.secret})
            self.assertEqual(accepted.status_code, 200, accepted.content)

    async def test_tokens_are_counted_without_a_generation(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            counted = orjson.loads((await self.send(client, f"{PATH}/count_tokens", tools=[WEATHER_TOOL])).content)
            made = await self.message(client, tools=[WEATHER_TOOL])
            self.assertEqual(counted, {"input_tokens": made["usage"]["input_tokens"]})

    async def test_messages_are_stored_by_a_setting(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            await self.message(client, metadata={"user_id": "u"})
            row = await Response.objects.aget()
            self.assertEqual((row.stored, row.api_format, row.metadata), (False, "messages", {"user_id": "u"}))
            stored = CreateRequest.load((await StoredRequest.objects.aget()).create_request, ())
            sent = {"model": "m", "max_tokens": 100, "messages": HI, "metadata": {"user_id": "u"}}
            self.assertEqual(orjson.loads(stored.client_body), sent)
            with override_settings(RESPONSES_STORE_API_FORMATS=True):
                made = await self.message(client)
            response = await client.get(f"/v1/responses/{made['id'].replace('msg_', 'resp_')}")
            self.assertEqual(orjson.loads(response.content)["output"][-1]["content"][0]["text"], "Hello there!")

    async def test_models_have_the_form_of_the_api_if_its_version_is_sent(self) -> None:
        async with self.serving() as client:
            listed = orjson.loads((await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})).content)
            self.assertEqual((listed["first_id"], listed["has_more"]), ("m", False))
            anthropic_types.validate("ModelInfo", orjson.dumps(listed["data"][0]))
            shown = await client.get("/v1/models/m", headers={"anthropic-version": "2023-06-01"})
            self.assertEqual(orjson.loads(shown.content), listed["data"][0])
            missing = await client.get("/v1/models/x", headers={"anthropic-version": "2023-06-01"})
            error = orjson.loads(missing.content)
            self.assertEqual((missing.status_code, error["type"], error["error"]["type"]), (404, "error", "not_found_error"))
            of_openai = orjson.loads((await client.get("/v1/models/x")).content)["error"]
            self.assertEqual(of_openai["code"], "model_not_found")
