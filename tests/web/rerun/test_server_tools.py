"""Rerun of requests with code and file search, in a real browser: recorded results, stops at other calls, and approvals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.sandbox.runner import runner
from tests.support.server.serve_command import Server
from tests.support.web.chat_visitor import matching_tape
from tests.support.web.house_rules import add_house_rules
from tests.support.web.rerun_page import answer, call, column, run

pytestmark = pytest.mark.browser


def code(text: str) -> str:
    return f"<|channel|>analysis to=python code<|message|>{text}<|call|>"


DRAW = "import random; print('lot', random.random())"
TEXTS = {
    "Draw lots": (
        *(code(DRAW), answer("The first lot.")),
        *(code(DRAW), answer("The second lot.")),
        *(code("print('another')"), answer("Never said.")),
    ),
    "Vacation days": (
        *(call("file_search", query="vacation"), answer("30 days.")),
        *(call("file_search", query="vacation"), answer("Still 30 days.")),
        *(call("file_search", query="holidays"), answer("Never said.")),
    ),
    "Ask first": (
        *(code("print(6 * 7)"), answer("It is 42.")),
        *(code("print(6 * 8)"), answer("It is 48.")),
        *(code("print(6 * 9)"), answer("Then I do not know.")),
    ),
    "Ask for tides": (
        *('<|channel|>analysis to=browser.search code<|message|>{"query": "tides"}<|call|>', answer("Tides.")),
        *('<|channel|>analysis to=browser.search code<|message|>{"query": "tides"}<|call|>', answer("Tides again.")),
    ),
    "Ask for days": (
        *(call("file_search", query="vacation"), answer("30 days of it.")),
        *(call("file_search", query="vacation"), answer("Again 30 days of it.")),
    ),
}
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with a sandbox, web search and a tape."""
    folder = tmp_path_factory.mktemp("rerun")
    with runner(folder) as sandbox:
        engine = matching_tape(folder, TEXTS)
        with Server(folder / "data", "--engine", engine, "--demo-tools", RESPONSES_SANDBOX_URL=sandbox.url) as server:
            yield server.ready()


@pytest.fixture(scope="module")
def store(chat_server: Server) -> str:
    """Return the id of a vector store with a file."""
    return add_house_rules(chat_server)


def test_code_gets_its_recorded_output_and_other_code_stops(chat_server: Server, page: Page) -> None:
    original = chat_server.ask(model="tools", input="Draw lots", tools=[CODE], include=["code_interpreter_call.outputs"]).json()
    assert [item["type"] for item in original["output"]] == ["code_interpreter_call", "message"]
    (logs,) = original["output"][0]["outputs"]
    page.goto(f"{chat_server.url}/responses/{original['id']}/rerun")
    run(page)
    result = column(page, "Run 1")
    expect(result).to_contain_text("The second lot.")
    expect(result.locator(".code_interpreter_call")).to_contain_text(logs["logs"].strip())
    run(page)
    expect(result.locator(".notice.error")).to_contain_text("code_interpreter(print('another'))")
    expect(result.locator(".notice.error")).to_contain_text("random.random()")
    expect(result).not_to_contain_text("Never said.")


def test_file_search_gets_its_recorded_passages_and_another_query_stops(chat_server: Server, page: Page, store: str) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    original = chat_server.ask(model="tools", input="Vacation days", tools=tools).json()
    assert [item["type"] for item in original["output"]] == ["file_search_call", "message"]
    page.goto(f"{chat_server.url}/responses/{original['id']}/rerun")
    run(page)
    result = column(page, "Run 1")
    expect(result).to_contain_text("Still 30 days.")
    expect(result.locator(".file_search_call")).to_contain_text("Each employee has 30 days of vacation.")
    run(page)
    expect(result.locator(".notice.error")).to_contain_text('file_search(["holidays"])')
    expect(result.locator(".notice.error")).to_contain_text('file_search(["vacation"])')
    expect(result).not_to_contain_text("Never said.")


def test_code_asks_before_it_runs(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Ask first", tools=[CODE]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun?tools=ask")
    run(page)
    result = column(page, "Run 1")
    expect(result.locator(".answers")).to_contain_text('code interpreter: python({"code":"print(6 * 8)"})')
    result.get_by_label("Approve").check()
    result.get_by_role("button", name="Continue", exact=True).click()
    expect(result).to_contain_text("It is 48.")
    expect(result.locator(".code_interpreter_call")).to_contain_text("48")
    run(page)
    expect(result.locator(".answers")).to_contain_text("print(6 * 9)")
    result.get_by_label("Deny").check()
    result.get_by_role("button", name="Continue", exact=True).click()
    expect(result).to_contain_text("Then I do not know.")
    expect(result.locator(".code_interpreter_call")).to_have_count(0)


def test_searches_ask_before_they_run(chat_server: Server, page: Page, store: str) -> None:
    for message, tool, shown in (
        ("Ask for tides", {"type": "web_search"}, "Tides again."),
        ("Ask for days", {"type": "file_search", "vector_store_ids": [store]}, "Again 30 days of it."),
    ):
        uid = chat_server.ask(model="tools", input=message, tools=[tool]).json()["id"]
        page.goto(f"{chat_server.url}/responses/{uid}/rerun?tools=ask")
        run(page)
        result = column(page, "Run 1")
        result.get_by_label("Approve").check()
        result.get_by_role("button", name="Continue", exact=True).click()
        expect(result).to_contain_text(shown)
        expect(result.locator(f".{tool['type']}_call")).to_contain_text("Done")
