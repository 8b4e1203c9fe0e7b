"""Tools of Anthropic that the client runs, by their type alone."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api.case import THOUGHT, WEATHER, record_text
from tests.support.api_formats.messages_case import HI, MessagesCase
from tests.support.runs.server_tools import prompt_text

SCREEN = {"display_width_px": 1024, "display_height_px": 768}
COMMANDS = ("view", "create", "str_replace", "insert")
# Type -> name, other fields, values of the first property, further properties.
TOOLS: dict[str, tuple[str, dict[str, Any], tuple[str, ...], set[str]]] = {
    "bash_20241022": ("bash", {}, (), {"command", "restart"}),
    "bash_20250124": ("bash", {"cache_control": {"type": "ephemeral"}}, (), {"command", "restart"}),
    "text_editor_20241022": ("str_replace_editor", {}, (*COMMANDS, "undo_edit"), {"path", "new_str", "insert_line"}),
    "text_editor_20250124": ("str_replace_editor", {}, (*COMMANDS, "undo_edit"), {"view_range"}),
    "text_editor_20250429": ("str_replace_based_edit_tool", {}, COMMANDS, {"file_text", "old_str"}),
    "text_editor_20250728": ("str_replace_based_edit_tool", {"max_characters": 9000}, COMMANDS, {"insert_text"}),
    "memory_20250818": ("memory", {"strict": True}, (*COMMANDS, "delete", "rename"), {"insert_text", "old_path", "new_path"}),
    "computer_20241022": ("computer", SCREEN, ("key", "screenshot"), {"text", "coordinate"}),
    "computer_20250124": ("computer", {**SCREEN, "display_number": 1}, ("scroll", "wait"), {"scroll_direction", "duration"}),
    "computer_20251124": ("computer", {**SCREEN, "enable_zoom": True}, ("zoom", "left_click"), {"region"}),
}


def shown_function(prompt: str, name: str) -> str:
    """Return the type of the parameters of the function in the prompt."""
    return prompt.partition("namespace functions {")[2].partition(f"type {name} = ")[2].partition("}) => any;")[0]


class KnownToolsTest(MessagesCase):
    """Functions in place of the tools, and the calls."""

    async def test_each_tool_is_a_function_with_its_schema(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * len(TOOLS)) as client:
            for kind, (name, fields, values, properties) in TOOLS.items():
                with self.subTest(kind=kind):
                    await self.message(client, tools=[{"type": kind, "name": name, **fields}])
                    prompt = prompt_text(self.engine.requests[-1].prompt)
                    shown = shown_function(prompt, name)
                    for word in (*values, *properties):
                        self.assertIn(word, shown)
                    if "max_characters" in fields:
                        self.assertIn("9000 characters", prompt)
                    if kind.startswith("computer"):
                        self.assertIn("1024 x 768 pixels", prompt)
                    self.assertEqual("undo_edit" in prompt, "undo_edit" in values)
                    self.assertEqual("zoom" in prompt, "zoom" in values)

    async def test_a_call_and_its_result(self) -> None:
        bash = {"type": "bash_20250124", "name": "bash"}
        called = WEATHER.replace("get_weather", "bash").replace('{"city":"Paris"}', '{"command":"ls"}')
        choice = {"type": "tool", "name": "bash"}
        async with self.serving(record_text(called), record_text(THOUGHT)) as client:
            made = await self.message(client, tools=[bash], tool_choice=choice)
            call = made["content"][-1]
            self.assertEqual((call["type"], call["name"], call["input"]), ("tool_use", "bash", {"command": "ls"}))
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": "a.txt"}
            messages = [*HI, {"role": "assistant", "content": made["content"]}, {"role": "user", "content": [result]}]
            again = await self.message(client, tools=[bash], messages=messages)
            self.assertEqual(again["content"][0]["text"], "Hello there!")

    async def test_errors_name_the_field(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"type": "bash_20250124", "name": "shell"}, "tools[0].name: Invalid value: 'shell'. Supported values are: 'bash'"),
            ({"type": "bash_20250124"}, "'tools[0].name'"),
            ({"type": "computer_20250124", "name": "computer"}, "'tools[0].display_width_px'"),
            ({"type": "memory_20250818", "name": "memory", "max_characters": 5}, "'tools[0].max_characters'"),
            ({"type": "bash_20990101", "name": "bash"}, "tools[0].type: Invalid value: 'bash_20990101'"),
        ]
        async with self.serving() as client:
            for tool, message in cases:
                with self.subTest(message=message):
                    response = await self.send(client, tools=[tool])
                    self.assertEqual(response.status_code, 400)
                    self.assertIn(message, orjson.loads(response.content)["error"]["message"])
