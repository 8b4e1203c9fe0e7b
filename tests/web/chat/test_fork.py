"""Continuing a response in the chat keeps all parameters of the request."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location.",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City and country"}},
        "required": ["location"],
        "additionalProperties": False,
    },
}
LOOKUP = {"type": "function", "name": "lookup", "description": "Look it up", "parameters": {"type": "object", "properties": {}}}
PATCH = {"type": "custom", "name": "patch", "description": "Change a file"}
GIVEN: dict[str, Any] = {
    "instructions": "Be kind.",
    "tools": [WEATHER, LOOKUP, PATCH],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "lookup"}]},
    "parallel_tool_calls": False,
    "temperature": 0.25,
    "top_p": 0.5,
    "presence_penalty": 0.1,
    "max_output_tokens": 500,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"verbosity": "low"},
    "metadata": {"ticket": "42"},
    "truncation": "auto",
    "safety_identifier": "someone",
}
KEPT = (*GIVEN, "model")


def test_a_fork_keeps_every_parameter(visitor: Visitor, subtests: pytest.Subtests) -> None:
    first = visitor.server.ask(model="chat", input="greetings", **GIVEN).json()
    visitor.page.goto(f"{visitor.server.url}/chat?previous_response_id={first['id']}")
    expect(visitor.page.locator(".note")).to_contain_text("top_p")
    visitor.page.locator("details.settings > summary").click()
    expect(visitor.page.get_by_label("Instructions")).to_have_value("Be kind.")
    expect(visitor.page.get_by_label("Temperature")).to_have_value("0.25")
    expect(visitor.page.get_by_label("Max output tokens")).to_have_value("500")
    expect(visitor.page.get_by_label("Reasoning effort")).to_have_value("low")
    expect(visitor.page.get_by_label("Weather", exact=True)).to_be_checked()
    inherited = visitor.page.locator(".inherited")
    for name in ("tools", "tool_choice", "top_p", "text", "metadata", "reasoning"):
        with subtests.test(name=name):
            expect(inherited.get_by_text(name, exact=True)).to_be_visible()
    expect(inherited).to_contain_text("lookup, patch")
    visitor.page.keyboard.press("Escape")
    for words in ("greetings", "twice"):
        visitor.send(words)
        visitor.wait_for_end()
        made = visitor.fetched(visitor.uid)
        by_name = {name: sorted(made[name], key=lambda tool: tool["name"]) if name == "tools" else made[name] for name in KEPT}
        was = {name: sorted(first[name], key=lambda tool: tool["name"]) if name == "tools" else first[name] for name in KEPT}
        assert by_name == was
        # What is sent next is also right behind a reload.
        visitor.page.reload()
        expect(visitor.page.locator(".note")).to_contain_text("top_p")


def test_a_structured_fork_keeps_its_format_and_a_parameter_can_be_removed(visitor: Visitor) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    form = {"type": "json_schema", "name": "shape", "schema": schema, "strict": True}
    first = visitor.server.ask(model="chat", input="greetings", text={"format": form}, top_p=0.5, metadata={"a": "b"}).json()
    visitor.page.goto(f"{visitor.server.url}/chat?previous_response_id={first['id']}")
    visitor.page.locator("details.settings > summary").click()
    visitor.page.get_by_role("button", name="Remove top_p").click()
    visitor.page.keyboard.press("Escape")
    visitor.send("greetings")
    visitor.wait_for_end()
    made = visitor.fetched(visitor.uid)
    assert made["text"] == first["text"]
    assert (made["top_p"], made["metadata"]) == (1.0, {"a": "b"})


def test_settings_of_a_fork_are_no_default_of_a_new_chat(visitor: Visitor) -> None:
    uid = visitor.server.ask(model="chat", input="greetings", instructions="Be brief.", top_p=0.5).json()["id"]
    visitor.page.goto(f"{visitor.server.url}/chat/{uid}")
    visitor.page.locator("details.settings > summary").click()
    expect(visitor.page.get_by_label("Instructions")).to_have_value("Be brief.")
    visitor.page.get_by_label("Temperature").fill("0.5")
    visitor.page.keyboard.press("Tab")
    visitor.page.goto(f"{visitor.server.url}/chat")
    expect(visitor.page.get_by_label("Temperature", exact=True)).to_have_value("0.5")
    expect(visitor.page.get_by_label("Instructions")).to_have_value("")
    expect(visitor.page.locator(".inherited")).to_be_hidden()


def test_message_typed_while_a_conversation_loads_continues_the_conversation(visitor: Visitor) -> None:
    uid = visitor.server.ask(model="chat", input="greetings").json()["id"]
    requests: list[Route] = []
    visitor.page.route("**/turns", lambda route: requests.append(route))
    with visitor.page.expect_request("**/turns"):
        visitor.page.goto(f"{visitor.server.url}/chat/{uid}")
    visitor.field.fill("snowfall")
    visitor.field.press("Enter")
    expect(visitor.page.locator("form.composer .send")).to_be_disabled()
    expect(visitor.field).to_have_value("snowfall")
    expect(visitor.answers).to_have_count(0)
    requests.pop().continue_()
    visitor.send_and_wait("snowfall", "So it snows.")
    expect(visitor.answers).to_have_count(2)
    assert visitor.fetched(visitor.uid)["previous_response_id"] == uid
