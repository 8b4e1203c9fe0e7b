"""Fields of clients that OpenAI's API for Chat Completions lacks, and the words of errors that clients look for."""

from __future__ import annotations

from typing import Any, TypeAlias

import orjson
from django.test import AsyncClient

from tests.support.api.case import THOUGHT, TOOL, WEATHER, ApiCase, record_text

Message: TypeAlias = dict[str, Any]
FUNCTION = {key: value for key, value in TOOL.items() if key != "type"}
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM: Message = {"role": "system", "content": "Short."}
HI: Message = {"role": "user", "content": "Hi"}
CALL: Message = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER: Message = {"role": "assistant", "content": "So.", "reasoning_content": "Hm.", "tool_calls": [CALL]}
RESULT: Message = {"role": "tool", "tool_call_id": "call_0", "content": "1"}


class ChatClientsTest(ApiCase):
    """Chat Completions of a scripted model."""

    async def chat(self, client: AsyncClient, **body: Any) -> Any:
        """POST /v1/chat/completions."""
        data = orjson.dumps({"model": "m", **body})
        return await client.post("/v1/chat/completions", data, content_type="application/json")

    async def same_prompts(self, *bodies: dict[str, Any]) -> None:
        """Assert that the prompts of the requests are the same."""
        async with self.serving(*[record_text(THOUGHT)] * len(bodies)) as client:
            for body in bodies:
                response = await self.chat(client, **body)
                self.assertEqual(response.status_code, 200, response.content)
            plain, *others = (request.prompt for request in self.engine.requests)
            self.assertEqual(others, [plain] * len(others))

    async def test_marks_for_the_cache_in_tools_and_messages_change_nothing(self) -> None:
        messages = [SYSTEM, HI, ANSWER, RESULT]
        await self.same_prompts(
            {"messages": messages, "tools": [{"type": "function", "function": FUNCTION}]},
            {"messages": messages, "tools": [{"type": "function", "function": FUNCTION, **MARK}]},
            {"messages": messages, "tools": [{"type": "function", "function": {**FUNCTION, **MARK}}]},
            {
                "messages": [{**one, **MARK} for one in messages],
                "tools": [{"type": "function", "function": FUNCTION}],
            },
        )

    async def test_an_answer_that_litellm_got_from_another_api_is_read(self) -> None:
        thinking: Message = {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}
        items: Message = {"reasoning_items": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}]}
        signed = {"provider_specific_fields": {"thought_signature": "s"}}
        calls: list[Message] = [
            {"tool_calls": [{**CALL, **signed, "function": {**CALL["function"], **signed}}]},
            {"tool_calls": [{**CALL, "caller": {"type": "direct"}}]},
        ]
        await self.same_prompts(*({"messages": [HI, {**ANSWER, **more}, RESULT, HI]} for more in ({}, thinking, items, *calls)))

    async def test_a_part_of_an_answer_may_have_the_rest_of_the_answer(self) -> None:
        fields: Message = {"role": "assistant", "refusal": None, "reasoning_content": "Hm.", "annotations": [], "logprobs": []}
        parts = [{"type": "text", "text": "So."}, {"type": "text", "text": "So.", **fields}]
        await self.same_prompts(*({"messages": [HI, {"role": "assistant", "content": [one]}, HI]} for one in parts))
        async with self.serving() as client:
            response = await self.chat(client, messages=[{"role": "user", "content": parts[1:]}])
            self.refused(response, 400, "unknown_parameter", "messages[0].content[0].role")

    async def test_the_error_for_a_parameter_of_responses_names_that_of_chat_completions(self) -> None:
        async with self.serving() as client:
            for name, meant in (("instructions", "messages"), ("text", "response_format")):
                response = await self.chat(client, messages=[HI], **{name: {}})
                self.refused(response, 400, "unknown_parameter", name, f"Did you mean '{meant}'?")

    async def test_both_requests_of_open_webui_for_a_tool_loop_have_the_same_prompt(self) -> None:
        """Bodies of Open WebUI 0.12: the type of its connection chooses the API."""
        call = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
        function = {"name": "get_weather", "description": "Weather of a city.", "parameters": TOOL["parameters"]}
        messages: list[Message] = [
            {"role": "system", "content": "Short."},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "call_0", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "call_0", "content": "Paris: sunny"},
            {"role": "assistant", "content": "It is sunny."},
            {"role": "user", "content": "And then?"},
        ]
        items: list[Message] = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "function_call", "call_id": "call_0", **call},
            {"type": "function_call_output", "call_id": "call_0", "output": "Paris: sunny"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is sunny."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And then?"}]},
        ]
        options = {"model": "m", "temperature": 0.5, "top_k": 40, "min_p": 0.05, "seed": 42, "stream": True}
        chat = {"messages": messages, "stream_options": {"include_usage": True}, "max_tokens": 1000}
        responses = {"input": items, "instructions": "Short.", "max_output_tokens": 1000}
        tool = {"type": "function", **function, "strict": False}
        async with self.serving(*[record_text(THOUGHT)] * 2) as client:
            bodies: list[tuple[str, Message]] = [
                ("chat/completions", {**options, **chat, "tools": [{"type": "function", "function": function}]}),
                ("responses", {**options, **responses, "tools": [tool]}),
            ]
            for path, body in bodies:
                response: Any = await client.post(f"/v1/{path}", orjson.dumps(body), content_type="application/json")
                self.assertEqual(response.status_code, 200)
                streamed = b"".join([chunk async for chunk in response.streaming_content])
                self.assertIn(b'"total_tokens":', streamed)
                self.assertTrue(streamed.endswith(b"data: [DONE]\n\n"))
            first, second = self.engine.requests
            self.assertEqual(first.prompt, second.prompt)
            self.assertEqual(first.sampling, second.sampling)

    async def test_a_call_of_a_tool_that_the_model_invented_may_be_sent_back(self) -> None:
        invented = WEATHER.replace("functions.get_weather", "functions.mcp__weather.get:now")
        async with self.serving(*[record_text(text) for text in (invented, THOUGHT) * 2]) as client:
            (_, call) = (await self.made(client, input="Hi", tools=[TOOL]))["output"]
            self.assertEqual(call["name"], "mcp__weather.get:now")
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "unsupported call"}
            await self.made(client, input=[{"role": "user", "content": "Hi"}, call, result], tools=[TOOL])
            tools = [{"type": "function", "function": FUNCTION}]
            answer = orjson.loads((await self.chat(client, messages=[HI], tools=tools)).content)["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "unsupported call"}
            response = await self.chat(client, messages=[HI, answer, result], tools=tools)
            self.assertEqual(response.status_code, 200, response.content)

    async def test_clients_know_a_context_that_is_too_long_by_the_words_of_openai(self) -> None:
        async with self.serving() as client:
            length = self.engine.max_model_len
            response = await self.chat(client, messages=[{"role": "user", "content": "word " * length}])
            words = f"This model's maximum context length is {length} tokens. However, your messages resulted in "
            self.refused(response, 400, "context_length_exceeded", "messages", words)
