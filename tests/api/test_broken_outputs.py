"""Broken outputs of a model end in lawful streams: no 5xx, one terminal event, no text lost, and GET agrees with the stream.

`MUTATIONS=500` in the environment tries 500 outputs of each dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import DEFAULT_OUTPUT, output_format
from responses_app.engines.replay.engine import Recording, Tokens
from responses_app.protocol.output_problems import MESSAGES
from tests.support.api.case import TOOL, ApiCase, bare, tokens
from tests.support.dialects import chat_tapes, harmony_tapes
from tests.support.dialects.call_texts import CALL_TEXTS, TOOLS
from tests.support.dialects.mutations import EXAMPLES, WORD, Change, changes, mutate
from tests.support.dialects.parser_driver import CHATML, byte_vocabulary, chat, harmony

pytestmark = pytest.mark.slow

HARMONY_MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>")
# Tokens at which an engine stops.
_STOP = re.compile(r"<\|(?:im_end|return|call|endoftext)\|>")
TURN_MARKERS = ("<|im_end|>", "<|pad|>")
BROKEN_CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": Oslo}}</tool_call><|im_end|>'
# Outputs around the calls of a format.
BEFORE, AFTER = ("", "Hello. ", "<think>\nHm.\n</think>\n\n"), ("<|im_end|>", "", " Bye. 🦑<|im_end|>")


def open_format(tool_parser: str) -> ChatDialect:
    """Open a dialect with the calls of `tool_parser` and a tokenizer with a token per byte."""
    output = output_format("qwen3", tool_parser)
    assert output is not None
    return ChatDialect(byte_vocabulary(), ChatTemplate(CHATML), byte_vocabulary().encode("<|im_end|>"), output)


def strings(value: Any) -> Iterator[str]:
    """Yield all strings in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from strings(child)


class BrokenOutputCase(ApiCase):
    """Sends mutated tapes through the API."""

    __test__ = False
    texts: Sequence[str]
    markers: Sequence[str]
    # Tokens of half a character.
    half_character: Sequence[int] = byte_vocabulary().encode("🦑")[:2]
    # Text that the output may leave out, beside the texts of problems.
    dropped = re.compile(r"(?!)")

    def encode(self, text: str) -> list[int]:
        return byte_vocabulary().encode(text)

    def recordings(self) -> list[tuple[Recording, str, set[str]]]:
        """Draw outputs, the same in every run, each with the words inserted; the first output is empty."""
        recordings: list[tuple[Recording, str, set[str]]] = [(Recording([]), "", set())]

        @settings(max_examples=EXAMPLES, phases=[Phase.generate], derandomize=True, database=None)
        @given(
            st.sampled_from(self.texts), changes, st.sampled_from((1, 3, 1000)), st.sampled_from((None, None, None, 0, 3, 7))
        )
        def draw(text: str, made: list[Change], size: int, noise: int | None) -> None:
            output = "".join(mutate(text, self.markers, made))
            ids = self.encode(output)
            if noise is not None:
                at = len(ids) * noise // 7
                ids = [*ids[:at], *self.half_character, *ids[at:]]
            chunks = [Tokens(ids[at : at + size]) for at in range(0, len(ids), size)]
            words = set() if noise is not None else set(WORD.findall(self.dropped.sub("", _STOP.split(output)[0])))
            recordings.append((Recording(chunks), output, words))

        draw()
        return recordings

    def test_every_broken_output_ends_in_a_lawful_stream(self) -> None:
        # Drawn in the thread of all tests: in each new thread Hypothesis looks through all objects of the process, for half a second.
        async_to_sync(self.stream_all)(self.recordings())

    async def stream_all(self, recordings: Sequence[tuple[Recording, str, set[str]]]) -> None:
        """Stream each output, and compare the events with the output, the response and the replay."""
        async with self.serving(*(recording for recording, _, _ in recordings)) as client:
            for number, (_, output, words) in enumerate(recordings):
                with self.subTest(number=number):
                    events = await self.stream(client, tools=TOOLS)
                    final = events[-1]["response"]
                    self.assertIn(events[-1]["type"], ("response.completed", "response.incomplete"), final["error"])
                    problems = final.get("output_problems", [])
                    self.assertLessEqual({problem["type"] for problem in problems}, set(MESSAGES))
                    seen = set(WORD.findall(" ".join(strings([final["output"], problems]))))
                    self.assertLessEqual(words, seen, (output, final["output"]))
                    got = await client.get(f"/v1/responses/{final['id']}")
                    self.assertEqual(orjson.loads(got.content), final)
                    replayed = await client.get(f"/v1/responses/{final['id']}?stream=true")
                    self.assertEqual(bare(await self.read(replayed)), bare(events))


class HarmonyBrokenOutputTest(BrokenOutputCase):
    """Output in harmony."""

    __test__ = True
    dialect: Dialect = harmony()
    texts = tuple(text for text, _ in harmony_tapes.TAPES.values())
    markers = HARMONY_MARKERS
    half_character = (172, 253)
    # Names of channels and types.
    dropped = re.compile(r"<\|(?:channel|constrain)\|>\s*\w*")

    def encode(self, text: str) -> list[int]:
        return tokens(text)


class ChatBrokenOutputTest(BrokenOutputCase):
    """Output of a chat model with Hermes calls."""

    __test__ = True
    dialect: Dialect = chat()
    texts = tuple(text for text, _ in chat_tapes.TAPES.values())
    markers = (*DEFAULT_OUTPUT.markers, *TURN_MARKERS)
    # The id of a call is left out.
    dropped = re.compile(r'.*"id".*', re.DOTALL)

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

    async def test_call_of_unknown_tool_is_a_call_with_a_problem(self) -> None:
        text = BROKEN_CALL.replace("get_weather", "dance").replace("Oslo", '"Oslo"')
        async with self.serving(Recording([Tokens(self.encode(text))])) as client:
            made = await self.made(client, tools=[TOOL])
            (call,), (problem,) = made["output"], made["output_problems"]
            self.assertEqual((call["type"], call["name"]), ("function_call", "dance"))
            self.assertEqual((problem["type"], problem["item_id"]), ("unknown_tool", call["id"]))

    async def test_call_of_custom_tool_has_no_problem(self) -> None:
        text = '<tool_call>{"name": "shell", "arguments": {"input": "ls"}}</tool_call><|im_end|>'
        async with self.serving(Recording([Tokens(self.encode(text))])) as client:
            made = await self.made(client, tools=[{"type": "custom", "name": "shell"}])
            self.assertEqual([item["type"] for item in made["output"]], ["custom_tool_call"])
            self.assertNotIn("output_problems", made)

    async def test_empty_output_is_a_problem(self) -> None:
        async with self.serving(Recording([Tokens(self.encode("<|im_end|>"))])) as client:
            made = await self.made(client)
            self.assertEqual([problem["type"] for problem in made["output_problems"]], ["empty_output"])

    async def test_marker_that_the_token_limit_cuts_is_not_in_the_log(self) -> None:
        ids = self.encode("Hello there! <tool_ca")
        async with self.serving(*[Recording([Tokens(ids)])] * 2) as client:
            with self.assertNoLogs("responses.run", "WARNING"):
                cut = await self.made(client, max_output_tokens=len(ids) - 1)
            with self.assertLogs("responses.run", "WARNING") as logs:
                ended = await self.made(client)
        self.assertEqual((cut["status"], ended["status"]), ("incomplete", "completed"))
        for made in (cut, ended):
            self.assertEqual([problem["type"] for problem in made["output_problems"]], ["unfinished_marker"])
        self.assertEqual([MESSAGES["unfinished_marker"] in line for line in logs.output], [True])


class FormatBrokenOutputCase(BrokenOutputCase):
    """Output with the calls of a tool parser."""

    tool_parser: str

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        dialect = open_format(cls.tool_parser)
        cls.dialect = dialect
        output = output_format("qwen3", cls.tool_parser)
        assert output is not None
        cls.markers = (*output.markers, *TURN_MARKERS)
        cls.texts = [before + text + after for text in CALL_TEXTS[cls.tool_parser] for before in BEFORE for after in AFTER]


class JsonBrokenOutputTest(FormatBrokenOutputCase):
    """Calls as JSON objects without markers."""

    __test__ = True
    tool_parser = "llama3_json"


class NamedBrokenOutputTest(FormatBrokenOutputCase):
    """Calls as a name and JSON between special tokens."""

    __test__ = True
    tool_parser = "kimi_k2"


class MistralBrokenOutputTest(FormatBrokenOutputCase):
    """Calls of Mistral models."""

    __test__ = True
    tool_parser = "mistral"


class XmlBrokenOutputTest(FormatBrokenOutputCase):
    """Calls as elements."""

    __test__ = True
    tool_parser = "qwen3_coder"


class KeyedXmlBrokenOutputTest(FormatBrokenOutputCase):
    """Calls as elements of keys and values."""

    __test__ = True
    tool_parser = "glm45"


class PythonBrokenOutputTest(FormatBrokenOutputCase):
    """Calls as Python."""

    __test__ = True
    tool_parser = "lfm2"


class GemmaBrokenOutputTest(FormatBrokenOutputCase):
    """Calls of Gemma models."""

    __test__ = True
    tool_parser = "gemma4"
