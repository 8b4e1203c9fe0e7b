"""Broken outputs of a model end in lawful streams: no 5xx, one terminal event, and GET agrees with the stream.

`MUTATIONS=500` in the environment tries 500 outputs of each dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect
from responses_app.engines.replay.engine import Recording, Tokens
from tests.support.api.case import TOOL, ApiCase, tokens
from tests.support.dialects import chat_tapes, harmony_tapes
from tests.support.dialects.mutations import EXAMPLES, Change, changes, mutate
from tests.support.dialects.parser_driver import byte_vocabulary, chat, harmony

HARMONY_MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>")
CHAT_MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<|pad|>")
# Tokens of bytes that are no UTF-8.
NOISE = (172, 253, 190, 199, 130)
BROKEN_CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": Oslo}}</tool_call><|im_end|>'


class BrokenOutputCase(ApiCase):
    """Sends mutated tapes through the API."""

    __test__ = False
    texts: Sequence[str]
    markers: Sequence[str]

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def recordings(self) -> list[Recording]:
        """Draw the outputs, the same in every run, and an empty output."""
        found = [Recording([])]

        @settings(max_examples=EXAMPLES, phases=[Phase.generate], derandomize=True, database=None)
        @given(st.sampled_from(self.texts), changes, st.sampled_from((1, 3, 1000)), st.sampled_from(((), (), (), NOISE)))
        def draw(text: str, made: list[Change], size: int, noise: tuple[int, ...]) -> None:
            ids = self.encode("".join(mutate(text, self.markers, made)))
            ids = [*ids[: len(ids) // 2], *noise, *ids[len(ids) // 2 :]]
            found.append(Recording([Tokens(ids[at : at + size]) for at in range(0, len(ids), size)]))

        draw()
        return found

    async def test_every_broken_output_ends_in_a_lawful_stream(self) -> None:
        recordings = self.recordings()
        async with self.serving(*recordings) as client:
            for number in range(len(recordings)):
                with self.subTest(number=number):
                    events = await self.stream(client, tools=[TOOL])
                    final = events[-1]["response"]
                    self.assertIn(events[-1]["type"], ("response.completed", "response.incomplete"), final["error"])
                    got = await client.get(f"/v1/responses/{final['id']}")
                    self.assertEqual(orjson.loads(got.content), final)


class HarmonyBrokenOutputTest(BrokenOutputCase):
    """Output in harmony."""

    __test__ = True
    dialect: Dialect = harmony()
    texts = tuple(text for text, _ in harmony_tapes.TAPES.values())
    markers = HARMONY_MARKERS

    def encode(self, text: str) -> list[int]:
        return tokens(text)


class ChatBrokenOutputTest(BrokenOutputCase):
    """Output of a chat model with Hermes calls."""

    __test__ = True
    dialect: Dialect = chat()
    texts = tuple(text for text, _ in chat_tapes.TAPES.values())
    markers = CHAT_MARKERS

    def encode(self, text: str) -> list[int]:
        return byte_vocabulary().encode(text)

    async def test_invalid_arguments_reach_the_client_and_can_be_answered(self) -> None:
        recordings = [Recording([Tokens(self.encode(text))]) for text in (BROKEN_CALL, "I see.<|im_end|>")]
        async with self.serving(*recordings) as client:
            made = await self.made(client, tools=[TOOL])
            (call,) = made["output"]
            self.assertEqual((made["status"], call["status"], call["arguments"]), ("completed", "completed", '{"city": Oslo}'))
            self.assertEqual([problem["type"] for problem in made["output_problems"]], ["invalid_tool_arguments"])
            answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "The arguments are no JSON."}
            later = await self.made(client, tools=[TOOL], previous_response_id=made["id"], input=[answer])
            self.assertEqual(later["output"][0]["content"][0]["text"], "I see.")
            self.assertNotIn("output_problems", later)
