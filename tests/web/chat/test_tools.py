"""A person gives a model tools and parameters in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser


def test_a_demo_tool_runs_automatically(visitor: Visitor) -> None:
    visitor.choose("weather")
    visitor.send_and_wait("weatherwise", "It is fine in Oslo.")
    card = visitor.page.get_by_role("article", name="Call to get_weather")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("Done")
    expect(card).to_contain_text('"source": "sample"')
    made = visitor.fetched(visitor.uid)
    assert visitor.fetched(made["previous_response_id"])["output"][-1]["type"] == "function_call"
    visitor.page.reload()
    expect(card).to_contain_text('"source": "sample"')
    expect(visitor.last).to_contain_text("It is fine in Oslo.")


def test_a_person_writes_what_a_tool_returns(visitor: Visitor) -> None:
    visitor.choose("weather", run_automatically=False)
    visitor.send("handmade")
    output = visitor.page.get_by_label("Result of get_weather")
    expect(output).to_be_focused()
    # A call still waits after a reload.
    visitor.page.reload()
    expect(output).to_be_visible()
    output.fill("snowfall")
    output.press("Enter")
    expect(visitor.last).to_contain_text("So it snows.")
    expect(visitor.page.get_by_role("article", name="Call to get_weather")).to_contain_text("snowfall")


def test_an_unanswered_call_does_not_block_the_thread(visitor: Visitor) -> None:
    visitor.choose("weather", run_automatically=False)
    visitor.send("handmade")
    expect(visitor.page.get_by_label("Result of get_weather")).to_be_visible()
    visitor.send_and_wait("greetings", "Hello there!")
    card = visitor.page.get_by_role("article", name="Call to get_weather")
    expect(card).to_contain_text("The user did not provide a result for this tool call.")


def test_parameters_go_with_the_request_and_are_remembered(visitor: Visitor) -> None:
    visitor.page.locator("details.settings > summary").click()
    visitor.page.get_by_label("Instructions").fill("Be kind.")
    visitor.page.get_by_label("Temperature").fill("0.3")
    visitor.page.get_by_label("Max output tokens").fill("16")
    visitor.page.get_by_label("Reasoning effort").select_option("low")
    visitor.page.keyboard.press("Tab")
    visitor.send_and_wait("slowly", "Stopped at 16 output tokens: the max_output_tokens of the request.")
    expect(visitor.page.get_by_role("status")).to_contain_text(
        "Stopped at 16 output tokens: the max_output_tokens of the request."
    )
    made = visitor.fetched(visitor.uid)
    assert (made["instructions"], made["temperature"], made["max_output_tokens"]) == ("Be kind.", 0.3, 16)
    assert made["reasoning"]["effort"] == "low"
    visitor.page.goto(f"{visitor.server.url}/chat")
    expect(visitor.page.get_by_label("Instructions")).to_have_value("Be kind.")


def test_calls_that_a_client_sent_are_shown_between_its_messages(visitor: Visitor) -> None:
    sent: list[dict[str, Any]] = [
        {"role": "user", "content": "First question"},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Rome"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "Thunderstorms"},
        {"role": "assistant", "content": "It thunders."},
        {"role": "user", "content": "greetings"},
    ]
    uid = visitor.server.ask(model="chat", input=sent).json()["id"]
    visitor.page.goto(f"{visitor.server.url}/chat/{uid}")
    articles = visitor.page.locator("article.person")
    expect(articles.locator(".speaker")).to_have_text(["You", "Assistant", "You"])
    card = articles.get_by_role("article", name="Call to get_weather")
    expect(card).to_contain_text("Rome")
    expect(card).to_contain_text("Thunderstorms")
    expect(card).to_contain_text("Done")
    visitor.page.get_by_role("button", name="Edit message").click()
    expect(visitor.page.get_by_label("Edited message")).to_have_value("greetings")
