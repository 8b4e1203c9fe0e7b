"""The limit that cuts an answer, in Chat Completions and Messages."""

from __future__ import annotations

from typing import Any

import orjson
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from responses_app.engines.replay.engine import ReplayEngine
from tests.support.api.case import record_text
from tests.support.api_formats.messages_case import HI, MessagesCase

LONG = record_text("<|channel|>final<|message|>" + "word " * 200)
WINDOW = 150


class CutAnswersTest(MessagesCase):
    """Answers that a limit ends."""

    def setUp(self) -> None:
        self.engine = ReplayEngine(max_model_len=WINDOW)

    async def test_chat_completions_name_the_limit_beside_the_finish_reason(self) -> None:
        await self.limit(default_output_tokens=16)
        details = {"reason": "max_output_tokens", "limit": "key_default", "value": 16}
        body = {"model": "m", "messages": HI}
        async with self.serving(LONG, LONG, record_text("<|channel|>final<|message|>Hi<|return|>")) as client:
            path, json = "/v1/chat/completions", "application/json"
            answer = await client.post(path, body, content_type=json)
            completion = ChatCompletion.model_validate_json(answer.content, strict=True)
            self.assertEqual(completion.choices[0].finish_reason, "length")
            self.assertEqual(completion.choices[0].model_extra, {"incomplete_details": details})
            streamed: Any = await client.post(path, {**body, "stream": True}, content_type=json)
            blocks = b"".join([part async for part in streamed.streaming_content]).split(b"\n\n")[:-2]
            chunks = [ChatCompletionChunk.model_validate_json(block.removeprefix(b"data: "), strict=True) for block in blocks]
            self.assertEqual(chunks[-1].choices[0].model_extra, {"incomplete_details": details})
            self.assertEqual([chunk for chunk in chunks[:-1] if chunk.choices[0].model_extra], [])
            whole = orjson.loads((await client.post(path, body, content_type=json)).content)
            self.assertNotIn("incomplete_details", whole["choices"][0])

    async def test_messages_name_the_limit_beside_the_stop_reason(self) -> None:
        cases: list[tuple[int, str, dict[str, Any]]] = [
            (16, "max_tokens", {"reason": "max_output_tokens", "limit": "request", "value": 16}),
            (
                1000,
                "model_context_window_exceeded",
                {"reason": "max_output_tokens", "limit": "context_window", "value": WINDOW},
            ),
        ]
        async with self.serving(*[LONG] * 4, record_text("<|channel|>final<|message|>Hi<|return|>")) as client:
            for most, reason, details in cases:
                made = await self.message(client, max_tokens=most)
                self.assertEqual((made["stop_reason"], made["incomplete_details"]), (reason, details))
                delta = (await self.events(client, max_tokens=most))[-2]["delta"]
                self.assertEqual(delta, {"stop_reason": reason, "stop_sequence": None, "incomplete_details": details})
            self.assertNotIn("incomplete_details", await self.message(client))
