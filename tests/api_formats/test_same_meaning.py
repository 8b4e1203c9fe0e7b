"""Requests with the same meaning in the three formats are the same request to the engine, and get the same answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from asgiref.sync import async_to_sync
from hypothesis import Phase, given, settings

from responses_app.demo import build
from responses_app.dialects.base import Dialect
from responses_app.engines.replay.engine import Recording, ReplayEngine, Tokens
from tests.support.api.case import THOUGHT, WEATHER, ApiCase, tokens
from tests.support.api_formats.same_meaning import FORMATS, Meaning, meanings
from tests.support.dialects.parser_driver import chat, demo_vocabulary
from tests.support.hypothesis_profile import examples

CHAT_CALL = (
    '<think>\nI look.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>'
)


class SameMeaningCase(ApiCase):
    """Sends requests with the same meaning in each format."""

    __test__ = False
    efforts: Sequence[str]
    outputs: Sequence[str]
    images = False

    def encode(self, text: str) -> list[int]:
        return tokens(text)

    def draw(self) -> list[Meaning]:
        """Draw requests, the same in every run."""
        drawn: list[Meaning] = []

        @settings(max_examples=examples(200), phases=[Phase.generate], derandomize=True, database=None)
        @given(meanings(self.efforts, images=self.images, spaced=False))
        def draw(meaning: Meaning) -> None:
            drawn.append(meaning)

        draw()
        return drawn

    def test_requests_and_answers_are_equal(self) -> None:
        async_to_sync(self.compare)(self.draw())

    async def compare(self, drawn: Sequence[Meaning]) -> None:
        """Send each request in each format. Compare the requests to the engine and the answers."""
        outputs = [self.encode(self.outputs[number % len(self.outputs)]) for number in range(len(drawn))]
        async with self.serving(*(Recording([Tokens(output)]) for output in outputs for _ in FORMATS)) as client:
            for meaning in drawn:
                seen: list[Any] = []
                for path, (body_of, answer_of) in FORMATS.items():
                    data = orjson.dumps({"model": "m", **body_of(meaning)})
                    response: Any = await client.post(f"/v1/{path}", data, content_type="application/json")
                    self.assertEqual(response.status_code, 200, (path, meaning, response.content))
                    made = self.engine.requests[-1]
                    request = (list(made.prompt), made.sampling, made.constraint, made.images)
                    seen.append((request, answer_of(orjson.loads(response.content))))
                self.assertEqual(seen[1], seen[0], ("Chat Completions", meaning))
                self.assertEqual(seen[2], seen[0], ("Messages", meaning))


class HarmonySameMeaningTest(SameMeaningCase):
    """Requests to a model in harmony."""

    __test__ = True
    efforts = ("low", "medium", "high")
    outputs = (THOUGHT, WEATHER)


class ChatSameMeaningTest(SameMeaningCase):
    """Requests to a chat model with vision and optional reasoning."""

    __test__ = True
    dialect: Dialect = chat(
        (build.FOLDERS["demo-chat"] / "chat_template.jinja").read_text(), demo_vocabulary(), supports_images=True
    )
    efforts = ("none", "medium")
    outputs = ("<think>\nThey greet me.\n</think>\n\nHello there!<|im_end|>", CHAT_CALL)
    images = True

    def setUp(self) -> None:
        self.engine = ReplayEngine(image_tokens=7)

    def encode(self, text: str) -> list[int]:
        return demo_vocabulary().encode(text)
