"""Pictures in outputs of server tools: image inputs of models that see, notices for the others."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from responses_app.engines.replay.engine import Recording, ReplayEngine, Tokens, recording
from responses_app.protocol.deltas import CodeCall, CodeResult, Delta, McpCall, McpResult
from tests.support.api.case import record_text
from tests.support.api.image_case import BLUE, IMAGE_TOKENS, RED, SeeingCase, answered, data_url, encode, part, tokenizer, user
from tests.support.runs.server_tools import CityTools, CutCase, RoundsCase, answer, call, prompt_text

MAP = {"type": "text", "text": "A map:"}
NOTICE = "[The result has a part of type image (image/png), which is shown to the user alone.]"
CALL = '<tool_call>\n{"name": "demo__look", "arguments": {"city": "Rome"}}\n</tool_call><eos>'


def mcp_image(picture: bytes) -> dict[str, str]:
    """Return a picture as MCP servers send it."""
    return {"type": "image", "data": b64encode(picture).decode(), "mimeType": "image/png"}


class FixedTools(CityTools):
    """The tool `look` with a fixed result, as an MCP call or as a run of code."""

    def __init__(self, result: Delta) -> None:
        super().__init__()
        self.result = result

    def opening(self, function: str) -> Delta | None:
        if function != "demo__look":
            return None
        return McpCall("demo", "look") if isinstance(self.result, McpResult) else CodeCall("cntr_1")

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return item["type"] in ("mcp_call", "code_interpreter_call")

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        return self.result


def mcp_result(*parts: Mapping[str, Any]) -> McpResult:
    """Return the result of an MCP call with content parts."""
    return McpResult(orjson.dumps(parts).decode())


class SeeingModelTest(SeeingCase, RoundsCase):
    """A chat model that sees."""

    def setUp(self) -> None:
        super().setUp()
        self.tools = FixedTools(mcp_result(MAP, mcp_image(BLUE)))

    def lines(self, *more: Recording) -> list[Recording]:
        return [recording(encode(CALL)), answered(), *more]

    async def test_picture_is_in_the_place_of_the_result(self) -> None:
        async with self.serving(*self.lines()) as client:
            made = await self.made(client)
            self.assertEqual(self.shown, [BLUE])
            self.assertIn("<|start|>tool:A map:<image><eos>", self.prompt)
            self.assertEqual(made["usage"]["input_tokens"], self.length(-2) + self.length(-1) + IMAGE_TOKENS - 1)

    def length(self, number: int) -> int:
        """Return the number of tokens of a prompt."""
        return len(self.engine.requests[number].prompt)

    async def test_later_responses_of_the_chain_see_the_picture_in_order(self) -> None:
        async with self.serving(*self.lines(answered("Blue."))) as client:
            made = await self.made(client, input=[user("First", part(data_url(RED)))])
            await self.made(client, previous_response_id=made["id"], input=[user("And", part(data_url(RED)))])
            self.assertEqual(self.shown, [RED, BLUE, RED])

    async def test_pictures_for_the_model_alone_are_seen_in_the_chain(self) -> None:
        self.tools = FixedTools(CodeResult(model_text="A plot:", model_images=[data_url(BLUE)]))
        async with self.serving(*self.lines(answered("Blue."))) as client:
            made = await self.made(client)
            self.assertIn("<|start|>tool:A plot:<image><eos>", self.prompt)
            await self.made(client, previous_response_id=made["id"], input="And?")
            self.assertEqual(self.shown, [BLUE])
            self.assertIn("<|start|>tool:A plot:<image><eos>", self.prompt)

    async def test_a_picture_without_text_stands_behind_the_item(self) -> None:
        self.tools = FixedTools(CodeResult([{"type": "logs", "logs": "4"}], model_images=[data_url(BLUE)]))
        async with self.serving(*self.lines()) as client:
            await self.made(client, include=["code_interpreter_call.outputs"])
            self.assertIn('{"outputs": [{"type": "logs", "logs": "4"}]}<image><eos>', self.prompt)

    async def test_pictures_of_a_failed_tool_are_seen(self) -> None:
        self.tools = FixedTools(McpResult(error={"type": "mcp_tool_execution_error", "content": [MAP, mcp_image(BLUE)]}))
        async with self.serving(*self.lines()) as client:
            await self.made(client)
            self.assertIn("<|start|>tool:The tool failed:\nA map:<image><eos>", self.prompt)

    async def test_a_broken_picture_becomes_a_notice(self) -> None:
        self.tools = FixedTools(mcp_result(mcp_image(b"\x89PNG\r\n\x1a\n"), MAP, mcp_image(RED)))
        async with self.serving(*self.lines()) as client:
            self.assertEqual((await self.made(client))["status"], "completed")
            self.assertEqual(self.shown, [RED])
            self.assertIn(f"{NOTICE}\nA map:<image><eos>", self.prompt)

    async def test_newest_pictures_are_seen_above_the_limits(self) -> None:
        for name, value in (("MAX_PICTURES", 1), ("MAX_PIXELS", 12), ("MAX_BYTES", len(BLUE) + 60)):
            with self.subTest(name=name), patch(f"responses_app.tools.outputs.output_limit.{name}", value):
                self.tools = FixedTools(mcp_result(mcp_image(RED)))
                async with self.serving(*self.lines(*self.lines())) as client:
                    made = await self.made(client)
                    self.tools = FixedTools(mcp_result(mcp_image(BLUE)))
                    await self.made(client, previous_response_id=made["id"], input="And?")
                    self.assertEqual(self.shown, [BLUE])
                    self.assertIn(f"tool:{NOTICE}<eos>", self.prompt)

    async def test_items_that_the_client_sends_back_are_seen(self) -> None:
        item = {"type": "mcp_call", "server_label": "demo", "name": "look", "arguments": "{}"}
        output = orjson.dumps([MAP, mcp_image(BLUE)]).decode()
        async with self.serving(answered()) as client:
            await self.made(client, input=[{**item, "output": output}, user("And?")], store=False)
            self.assertEqual(self.shown, [BLUE])


class TakeOverTest(SeeingCase, CutCase):
    """A run of two rounds, cut behind every append and continued by another manager."""

    @pytest.mark.slow
    async def test_continued_rounds_see_the_picture(self) -> None:
        self.tools = FixedTools(CodeResult(model_text="A plot:", model_images=[data_url(BLUE)]))
        first = recording(encode(CALL), match=lambda prompt: "A plot:" not in decode(prompt))
        chunks = [Tokens([token]) for token in encode("Blue.<eos>")]
        second = Recording(chunks, match=lambda prompt: "A plot:" in decode(prompt))
        self.engine = ReplayEngine([first, second], loop=True, image_tokens=IMAGE_TOKENS)
        async with self.serving() as client:
            cuts, different, _ = await self.different_cuts(client)
            self.assertGreater(len(cuts), 5)
            self.assertEqual(different, [])
            seen = [list(request.images) for request in self.engine.requests if "A plot:" in decode(request.prompt)]
            self.assertGreater(len(seen), 5)
            self.assertEqual([images for images in seen if images != [BLUE]], [])


def decode(prompt: Sequence[int]) -> str:
    """Return the text of a prompt."""
    return str(tokenizer().decode(list(prompt), skip_special_tokens=False))


class TextModelTest(RoundsCase):
    """A gpt-oss model, which takes text only."""

    async def test_pictures_become_notices(self) -> None:
        self.tools = FixedTools(mcp_result(MAP, mcp_image(BLUE)))
        async with self.serving(record_text(call("demo__look", "Rome")), record_text(answer("A map."))) as client:
            self.assertEqual((await self.made(client))["status"], "completed")
            self.assertIn(f"A map:\n{NOTICE}", prompt_text(self.engine.requests[-1].prompt))
            self.assertFalse(self.engine.requests[-1].images)
