"""The computer of the client: its calls are items of their own, what they give back is the picture of a screen."""

from __future__ import annotations

from typing import Any

import orjson
from openai.types.responses import Response as WireResponse

from tests.support.api.case import HELLO, TOOL, ApiCase, record_text
from tests.support.api.image_case import RED, SeeingCase, answered, data_url, user
from tests.support.api.tool_calls import call

COMPUTER = {"type": "computer"}
PREVIEW = {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "linux"}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
CALL: dict[str, Any] = {
    "type": "computer_call",
    "call_id": "c1",
    "actions": [CLICK, {"type": "wait"}],
    "pending_safety_checks": [],
}
OUTPUT: dict[str, Any] = {
    "type": "computer_call_output",
    "call_id": "c1",
    "output": {"type": "computer_screenshot", "image_url": data_url(RED)},
    "acknowledged_safety_checks": [],
}


class CalledTest(ApiCase):
    """Computer calls of a text model, which cannot be shown the screen."""

    async def test_computer_is_called_in_both_forms_and_can_be_forced(self) -> None:
        for tool, arguments in ((COMPUTER, {"actions": [CLICK]}), (PREVIEW, {"action": CLICK})):
            for choice in (tool["type"], "computer_use"):
                with self.subTest(tool=tool["type"], choice=choice):
                    async with self.serving(record_text(call(str(tool["type"]), arguments))) as client:
                        end = (await self.stream(client, tools=[tool, TOOL], tool_choice={"type": choice}))[-1]["response"]
                        WireResponse.model_validate(end, strict=True)
                        made = end["output"][-1]
                        self.assertEqual((made["type"], made["status"]), ("computer_call", "completed"))
                        self.assertEqual({key: made[key] for key in arguments}, arguments)
                        self.assertEqual((end["tools"][0], end["tool_choice"]), (tool, {"type": tool["type"]}))
                        self.assertTrue(made["id"].startswith("cu_"))

    async def test_invalid_computer_items_are_refused_by_path(self) -> None:
        async with self.serving() as client:
            for body, code, param in (
                ({"tools": [{"type": "computer", "display_width": 1}]}, "unknown_parameter", "tools[0].display_width"),
                ({"tools": [{**PREVIEW, "environment": "dos"}]}, "invalid_value", "tools[0].environment"),
                ({"tools": [{"type": "computer_use_preview"}]}, "missing_required_parameter", "tools[0].display_height"),
                ({"tool_choice": {"type": "computer"}, "tools": [TOOL]}, "invalid_value", "tool_choice"),
                ({"tool_choice": {"type": "computer_use"}, "tools": [TOOL]}, "invalid_value", "tool_choice"),
                ({"input": [{**CALL, "actions": None}]}, "missing_required_parameter", "input[0].actions"),
                ({"input": [{**CALL, "action": CLICK}]}, "missing_required_parameter", "input[0].actions"),
                ({"input": [{**CALL, "actions": [CLICK, {"type": "x"}]}]}, "invalid_value", "input[0].actions[1]"),
                ({"input": [{**CALL, "id": "fc_1"}]}, "invalid_value", "input[0].id"),
                ({"input": [CALL]}, None, "input"),
                ({"input": [OUTPUT]}, None, "input"),
                ({"input": [CALL, {**OUTPUT, "output": {"type": "x"}}]}, "invalid_value", "input[1].output.type"),
                (
                    {"input": [CALL, {**OUTPUT, "output": {"type": "computer_screenshot"}}]},
                    "missing_required_parameter",
                    "input[1].output.image_url",
                ),
                (
                    {"input": [CALL, {**OUTPUT, "output": {"type": "computer_screenshot", "file_id": "f"}}]},
                    "unsupported_parameter",
                    "input[1].output.file_id",
                ),
                ({"input": [CALL, OUTPUT]}, "unsupported_value", "input[1].output"),
            ):
                with self.subTest(body=str(body)[:160]):
                    self.refused(await self.post(client, **body), 400, code, param)


class ShownTest(SeeingCase):
    """With a model that sees."""

    async def test_the_screen_is_told_and_listed_with_its_url_if_that_is_asked_for(self) -> None:
        async with self.serving(answered(), answered()) as client:
            made = await self.made(client, input=[user("Click."), CALL, OUTPUT], tools=[COMPUTER])
            self.assertIn("<|start|>tool:<image><eos>", self.prompt)
            self.assertEqual(self.shown, [RED])
            path = f"/v1/responses/{made['id']}/input_items"
            for query, url in (("", None), ("?include=computer_call_output.output.image_url", data_url(RED))):
                with self.subTest(query=query):
                    listed = orjson.loads((await client.get(path + query)).content)["data"]
                    self.assertEqual(listed[0]["output"], {"type": "computer_screenshot", "image_url": url})
            await self.made(client, input="And now?", previous_response_id=made["id"])
            self.assertEqual(self.shown, [RED])

    async def test_a_screen_that_is_no_picture_is_refused_by_its_url(self) -> None:
        broken = {**OUTPUT, "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}}
        async with self.serving() as client:
            response = await self.post(client, input=[user("Click."), CALL, broken])
            self.refused(response, 400, "invalid_image_format", "input[2].output.image_url")


class HelloTest(ApiCase):
    """Answers of a model with a computer tool that makes no call."""

    async def test_a_choice_of_the_mode_leaves_the_computer_alone(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            self.assertEqual((await self.made(client, tools=[COMPUTER], tool_choice="none"))["output"][0]["type"], "message")
