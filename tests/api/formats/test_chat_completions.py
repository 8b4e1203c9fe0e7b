"""POST /v1/chat/completions and the routes of stored completions, with a scripted engine and the real database."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import orjson
from django.test import AsyncClient, override_settings
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionDeleted

from responses_app.models import Response
from tests.support.api.case import HARMONY, THOUGHT, TOOL, WEATHER, ApiCase, record_logprobs, record_text

HI = [{"role": "user", "content": "Hi"}]
FUNCTION = {"type": "function", "function": {key: value for key, value in TOOL.items() if key != "type"}}
PATH = "/v1/chat/completions"


class ChatCompletionsTest(ApiCase):
    """Completions of a scripted model in the harmony format."""

    async def chat(self, client: AsyncClient, **body: Any) -> Any:
        """POST /v1/chat/completions."""
        data = orjson.dumps({"model": "m", "messages": HI, **body})
        return await client.post(PATH, data, content_type="application/json")

    async def completion(self, client: AsyncClient, **body: Any) -> dict[str, Any]:
        """Return a completion, which the openai package accepts."""
        response = await self.chat(client, **body)
        self.assertEqual(response.status_code, 200, response.content)
        ChatCompletion.model_validate_json(response.content, strict=True)
        made: dict[str, Any] = orjson.loads(response.content)
        return made

    async def chunks(self, client: AsyncClient, **body: Any) -> list[dict[str, Any]]:
        """Return the chunks of a stream, which the openai package accepts."""
        response = await self.chat(client, stream=True, **body)
        self.assertEqual(response.status_code, 200, getattr(response, "content", b""))
        parts = [part async for part in response.streaming_content]
        blocks = b"".join(parts).split(b"\n\n")
        self.assertEqual(blocks[-2:], [b"data: [DONE]", b""])
        data = [block.removeprefix(b"data: ") for block in blocks[:-2]]
        for one in data:
            ChatCompletionChunk.model_validate_json(one, strict=True)
        return [orjson.loads(one) for one in data]

    async def test_a_text_and_its_reasoning(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            made = await self.completion(client)
            message = made["choices"][0]["message"]
            self.assertEqual((message["content"], message["reasoning_content"]), ("Hello there!", "They greet me."))
            self.assertEqual(made["choices"][0]["finish_reason"], "stop")
            chunks = await self.chunks(client, stream_options={"include_usage": True})
            deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
            self.assertEqual("".join(delta.get("content", "") for delta in deltas), "Hello there!")
            self.assertEqual("".join(delta.get("reasoning_content", "") for delta in deltas), "They greet me.")
            self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]), ([], made["usage"]))

    async def test_an_unknown_model_is_404(self) -> None:
        async with self.serving() as client:
            for stream in (False, True):
                answer = await self.chat(client, model="x", stream=stream)
                self.refused(answer, 404, "model_not_found", "model", "Available models: 'm'.")

    async def test_a_call_and_its_result(self) -> None:
        async with self.serving(*[record_text(WEATHER)] * 2, *[record_text(THOUGHT)] * 2) as client:
            made = await self.completion(client, tools=[FUNCTION])
            (choice,) = made["choices"]
            self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
            (call,) = choice["message"]["tool_calls"]
            self.assertEqual(call["function"], {"name": "get_weather", "arguments": '{"city":"Paris"}'})
            chunks = await self.chunks(client, tools=[FUNCTION])
            calls = [one for chunk in chunks for one in chunk["choices"][0]["delta"].get("tool_calls", [])]
            self.assertEqual((calls[0]["index"], calls[0]["function"]["name"]), (0, "get_weather"))
            self.assertEqual("".join(one["function"]["arguments"] for one in calls), '{"city":"Paris"}')
            result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
            again = await self.completion(client, tools=[FUNCTION], messages=[*HI, choice["message"], result])
            # As LiteLLM sends the message back.
            extended = {**choice["message"], "provider_specific_fields": {"refusal": None}}
            await self.completion(client, tools=[FUNCTION], messages=[*HI, extended, result])
            self.assertEqual(self.engine.requests[-1].prompt, self.engine.requests[-2].prompt)
            self.assertEqual(again["choices"][0]["message"]["content"], "Hello there!")

    async def test_a_completion_has_the_prompt_of_the_response_with_the_same_meaning(self) -> None:
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "I ask.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        ]
        items: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "I ask."}]},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Paris"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        ]
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            same = {"stop": ["zz"], "seed": 7, "logit_bias": {"50": -100, "007": 1.5}}
            await self.completion(client, messages=messages, tools=[FUNCTION], reasoning_effort="low", max_tokens=50, **same)
            await self.made(
                client,
                input=items,
                tools=[{**TOOL, "strict": False}],
                reasoning={"effort": "low"},
                max_output_tokens=50,
                **same,
            )
            of_chat, of_response = self.engine.requests
            self.assertEqual(of_chat.prompt, of_response.prompt)
            self.assertEqual(of_chat.sampling, of_response.sampling)
            self.assertEqual((of_chat.sampling.seed, of_chat.sampling.max_tokens), (7, 50))
            self.assertEqual(of_chat.sampling.bias, {50: -100, 7: 1.5})

    async def test_parameters_of_other_servers_have_their_effect(self) -> None:
        kwargs = ({"enable_thinking": True}, {"thinking": True}, {"enable_thinking": False}, {"thinking": False})
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            await self.completion(client, top_k=20, ignore_eos=True, min_p=0.1, repetition_penalty=1.2)
            (made,) = self.engine.requests
            self.assertEqual((made.sampling.top_k, made.sampling.ignore_eos), (20, True))
            self.assertEqual((made.sampling.min_p, made.sampling.repetition_penalty), (0.1, 1.2))
            for one in kwargs[:2]:
                await self.completion(client, chat_template_kwargs=one, reasoning_effort=None)
                self.assertEqual(self.engine.requests[-1].prompt, made.prompt)
            # This model always reasons.
            for one in kwargs[2:]:
                path = f"chat_template_kwargs.{next(iter(one))}"
                answer = await self.chat(client, chat_template_kwargs=one)
                self.refused(answer, 400, "unsupported_value", path, "'none' is not supported")
        with patch.object(HARMONY, "efforts", ()):
            async with self.serving(*[record_text(THOUGHT)] * 4) as client:
                for one in kwargs:
                    await self.completion(client, chat_template_kwargs=one)
        with patch.object(HARMONY, "efforts", ("none", "medium")):
            async with self.serving(record_text(THOUGHT)) as client:
                await self.completion(client, chat_template_kwargs={"enable_thinking": False}, reasoning_effort="medium")

    async def test_marks_for_the_cache_in_parts_change_nothing(self) -> None:
        marks: list[dict[str, Any]] = [
            {},
            {"cache_control": {"type": "ephemeral"}},
            {"prompt_cache_breakpoint": {"mode": "explicit"}},
        ]
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            for mark in marks:
                parts = [{"type": "text", "text": "Hi", **mark}]
                await self.completion(client, messages=[{"role": role, "content": parts} for role in ("system", "user")])
            plain, *marked = (request.prompt for request in self.engine.requests)
            self.assertEqual(marked, [plain, plain])

    async def test_an_unknown_field_of_a_mark_for_the_cache_is_refused(self) -> None:
        async with self.serving() as client:
            part = {"type": "text", "text": "Hi", "prompt_cache_breakpoint": {"mode": "explicit", "x": 1}}
            answer = await self.chat(client, messages=[{"role": "user", "content": [part]}])
            self.refused(answer, 400, "unknown_parameter", "messages[0].content[0].prompt_cache_breakpoint.x")

    async def test_errors_have_the_words_of_the_format(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        cases: list[tuple[dict[str, Any], str]] = [
            (
                {"messages": [{"role": "user", "content": [image]}]},
                "Unsupported content part 'image_url' at 'messages[0].content[0]'",
            ),
            ({"response_format": {"type": "json_object"}}, "to use 'response_format' of type 'json_object'."),
        ]
        async with self.serving() as client:
            for body, words in cases:
                response = await self.chat(client, **body)
                self.assertEqual(response.status_code, 400, response.content)
                self.assertIn(words, orjson.loads(response.content)["error"]["message"])

    async def test_a_file_without_a_source_is_refused_with_the_names_of_the_format(self) -> None:
        data = {"file_data": "data:text/plain;base64,aGk=", "file_id": "file-1"}
        async with self.serving() as client:
            for file, count in ((dict[str, str](), 0), (data, 2)):
                messages = [{"role": "user", "content": [{"type": "file", "file": file}]}]
                response = await self.chat(client, messages=messages)
                error = orjson.loads(response.content)["error"]
                expected = f"expected exactly one of 'file_data', 'file_id', but got {count} of them."
                self.assertEqual(error["message"], f"Invalid 'messages[0].content[0].file': {expected}")
                self.assertEqual((response.status_code, error["param"]), (400, "messages[0].content[0].file"))

    async def test_errors_name_paths_of_the_request(self) -> None:
        chosen = {"type": "function", "function": {"name": "f"}}
        cases: list[tuple[dict[str, Any], str, str]] = [
            ({"messages": []}, "messages", "array_below_min_length"),
            ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value"),
            ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
            (
                {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
                "messages[0].content[0].text",
                "missing_required_parameter",
            ),
            (
                {"messages": [*HI, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}]},
                "messages[1].content[0].image_url.url",
                "invalid_image_url",
            ),
            ({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}, "messages[0].tool_call_id", "invalid_value"),
            (
                {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
                "messages[0].content[0]",
                "unsupported_value",
            ),
            ({"n": 2}, "n", "unsupported_value"),
            ({"logit_bias": [5]}, "logit_bias", "invalid_type"),
            ({"logit_bias": {"Hello": 1}}, "logit_bias", "invalid_value"),
            ({"logit_bias": {"-5": 1}}, "logit_bias", "invalid_value"),
            ({"logit_bias": {"5": True}}, "logit_bias.5", "invalid_type"),
            ({"logit_bias": {"5": 100.5}}, "logit_bias.5", "decimal_above_max_value"),
            ({"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias", "object_above_max_properties"),
            ({"logit_bias": {"201088": 1}}, "logit_bias", "invalid_value"),
            ({"functions": [{}]}, "functions", "unsupported_parameter"),
            ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
            ({"temperature": 3}, "temperature", "decimal_above_max_value"),
            ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
            ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name", "invalid_value"),
            (
                {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
                "tools[0].function.parameters",
                "invalid_function_parameters",
            ),
            (
                {"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {}}}}]},
                "tools[0].custom.format.grammar.syntax",
                "missing_required_parameter",
            ),
            (
                {"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "text", "grammar": {}}}}]},
                "tools[0].custom.format.type",
                "invalid_value",
            ),
            ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice", "invalid_value"),
            ({"tool_choice": {}}, "tool_choice.type", "missing_required_parameter"),
            ({"tool_choice": {**chosen, "mode": "auto"}}, "tool_choice.mode", "unknown_parameter"),
            (
                {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [chosen, {"type": "function"}]}}},
                "tool_choice.allowed_tools.tools[1].function",
                "missing_required_parameter",
            ),
            ({"web_search_options": {}}, "web_search_options", "invalid_value"),
            (
                {"web_search_options": {"user_location": {"type": "approximate", "approximate": "Paris"}}},
                "web_search_options.user_location.approximate",
                "invalid_type",
            ),
            (
                {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "", "arguments": "{}"}}]}]},
                "messages[0].tool_calls[0].function.name",
                "string_below_min_length",
            ),
            (
                {"response_format": {"type": "text", "json_schema": {"name": "x"}}},
                "response_format.json_schema",
                "invalid_value",
            ),
            ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "missing_required_parameter"),
            (
                {
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "x", "strict": True, "schema": {"type": "object"}},
                    }
                },
                "response_format.json_schema.schema",
                "invalid_json_schema",
            ),
            ({"colour": 1}, "colour", "unknown_parameter"),
            ({"prediction": "x"}, "prediction", "invalid_type"),
            ({"prediction": {"type": "content", "content": 1}}, "prediction.content", "invalid_type"),
            ({"prediction": {"type": "content", "content": ["x"]}}, "prediction.content", "invalid_type"),
            ({"top_k": -1}, "top_k", "integer_below_min_value"),
            ({"min_p": 2}, "min_p", "decimal_above_max_value"),
            ({"repetition_penalty": 0}, "repetition_penalty", "decimal_below_min_value"),
            ({"chat_template_kwargs": {"tools": 1}}, "chat_template_kwargs.tools", "unknown_parameter"),
        ]
        async with self.serving() as client:
            for body, param, code in cases:
                with self.subTest(param=param):
                    self.refused(await self.chat(client, **body), 400, code, param)

    async def test_calls_without_results_are_named(self) -> None:
        calls = [
            {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for index in range(3)
        ]
        result = {"role": "tool", "tool_call_id": "call_0", "content": ""}
        async with self.serving() as client:
            response = await self.chat(client, messages=[*HI, {"role": "assistant", "tool_calls": calls}, result])
            words = "must be followed by tool messages responding to each 'tool_call_id'"
            self.refused(response, 400, "invalid_value", "messages[1].tool_calls[1]", words)
            self.assertTrue(orjson.loads(response.content)["error"]["message"].endswith("messages: call_1, call_2."))

    async def test_a_context_that_is_too_long_is_an_error_of_the_messages(self) -> None:
        async with self.serving() as client:
            text = "word " * self.engine.max_model_len
            response = await self.chat(client, messages=[{"role": "user", "content": text}])
            self.refused(response, 400, "context_length_exceeded", "messages")

    async def test_a_completion_is_stored_only_if_it_asks_for_that(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            hidden = await self.completion(client)
            self.assertEqual((await client.get(f"{PATH}/{hidden['id']}")).status_code, 404)
            row = await Response.objects.aget()
            self.assertEqual((row.stored, row.api_format), (False, "chat_completions"))
            stored = await self.completion(client, store=True, metadata={"a": "b"})
            got = orjson.loads((await client.get(f"{PATH}/{stored['id']}")).content)
            self.assertEqual({**stored, **got}, got)
            self.assertEqual(got["metadata"], {"a": "b"})
            response = await client.get(f"/v1/responses/{stored['id'].replace('chatcmpl-', 'resp_')}")
            self.assertEqual(response.status_code, 200)
            with override_settings(RESPONSES_STORE_API_FORMATS=True):
                kept = await self.completion(client)
            self.assertEqual((await client.get(f"{PATH}/{kept['id']}")).status_code, 200)

    async def test_stored_completions_are_listed_updated_and_deleted(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            await self.made(client)
            first = await self.completion(client, store=True, metadata={"n": "1"})
            second = await self.completion(client, store=True)
            page = orjson.loads((await client.get(PATH)).content)
            self.assertEqual([one["id"] for one in page["data"]], [first["id"], second["id"]])
            after = orjson.loads((await client.get(f"{PATH}?after={first['id']}&limit=1")).content)
            self.assertEqual(([one["id"] for one in after["data"]], after["has_more"]), ([second["id"]], False))
            matching = orjson.loads((await client.get(f"{PATH}?metadata[n]=1")).content)
            self.assertEqual([one["id"] for one in matching["data"]], [first["id"]])
            data = orjson.dumps({"metadata": {"n": "2"}})
            updated = await client.post(f"{PATH}/{first['id']}", data, content_type="application/json")
            self.assertEqual(orjson.loads(updated.content)["metadata"], {"n": "2"})
            self.assertEqual(orjson.loads((await client.get(f"{PATH}?model=%00")).content)["data"], [])
            data = orjson.dumps({"metadata": {"n\0": "\0003"}})
            updated = await client.post(f"{PATH}/{first['id']}", data, content_type="application/json")
            self.assertEqual(orjson.loads(updated.content)["metadata"], {"n": "3"})
            messages = orjson.loads((await client.get(f"{PATH}/{first['id']}/messages")).content)
            self.assertEqual([(one["role"], one["content"]) for one in messages["data"]], [("user", "Hi")])
            deleted = await client.delete(f"{PATH}/{first['id']}")
            ChatCompletionDeleted.model_validate_json(deleted.content, strict=True)
            self.assertEqual((await client.get(f"{PATH}/{first['id']}")).status_code, 404)

    async def test_metadata_of_a_stored_completion_may_be_null(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            made = await self.completion(client, store=True, metadata={"n": "1"})
            path = f"{PATH}/{made['id']}"
            cleared = await client.post(path, b'{"metadata":null}', content_type="application/json")
            self.assertEqual((cleared.status_code, orjson.loads(cleared.content)["metadata"]), (200, {}))
            refused = await client.post(path, b"{}", content_type="application/json")
            self.assertEqual((refused.status_code, orjson.loads(refused.content)["error"]["param"]), (400, "metadata"))

    async def test_messages_of_a_stored_completion_are_those_of_the_request(self) -> None:
        calls = [{"id": uid, "type": "function", "function": {"name": "f", "arguments": "{}"}} for uid in ("a", "b")]
        answer = {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": calls}
        results = [{"role": "tool", "tool_call_id": uid, "content": "x"} for uid in ("a", "b")]
        user, second = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Both."}
        refusal = {"role": "assistant", "content": None, "refusal": "No."}
        sent: list[dict[str, Any]] = [user, answer, *results, second, refusal, user]
        async with self.serving(record_text(THOUGHT)) as client:
            made = await self.completion(client, messages=sent, store=True)
            listed: list[dict[str, Any]] = []
            for order, count in (("asc", 4), ("asc", 3), ("desc", 4), ("desc", 3)):
                after = f"&after={listed[-1]['id']}" if count == 3 else ""
                url = f"{PATH}/{made['id']}/messages?limit=4&order={order}{after}"
                page = orjson.loads((await client.get(url)).content)
                self.assertEqual((len(page["data"]), page["has_more"]), (count, count == 4))
                listed += page["data"]
            self.assertEqual((await client.get(f"{PATH}/{made['id']}/messages?after=x")).status_code, 404)
        self.assertEqual([one["id"] for one in listed[:7]], [one["id"] for one in reversed(listed[7:])])
        self.assertEqual([{key: one[key] for key in raw} for one, raw in zip(listed, sent, strict=False)], sent)

    async def test_log_probabilities(self) -> None:
        async with self.serving(record_logprobs(), record_logprobs()) as client:
            made = await self.completion(client, logprobs=True, top_logprobs=2)
            tokens = made["choices"][0]["logprobs"]["content"]
            self.assertEqual("".join(one["token"] for one in tokens), "Hello there!")
            chunks = await self.chunks(client, logprobs=True, top_logprobs=2)
            streamed = [one for chunk in chunks for one in (chunk["choices"][0]["logprobs"] or {}).get("content", [])]
            self.assertEqual(streamed, tokens)
