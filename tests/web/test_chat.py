"""A person talks to a model in a real browser: sends, watches, stops, reloads, branches, answers calls."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Route, StorageState, expect, sync_playwright

from tests.run import BROWSER, NO_BROWSER
from tests.server.serving import Server
from tests.web.chatting import SLOWLY, Visitor, tape

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
CHROMIUM = shutil.which(BROWSER)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that says what the first word of a message asks for."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    folder = tmp_path_factory.mktemp("chat")
    server = Server(folder / "data", "--engine", tape(folder))
    yield server.ready()
    server.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser; every visitor has a fresh profile in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def signed_in(server: Server, browser: Browser) -> StorageState:
    """The cookies of the operator."""
    page = browser.new_page()
    page.goto(server.manage("signin", "--url", server.url))
    return page.context.storage_state()


@pytest.fixture
def visitor(server: Server, browser: Browser, signed_in: StorageState) -> Iterator[Visitor]:
    """Somebody at the chat page, whose browser must have nothing to complain about at the end."""
    visitor = Visitor(server, browser, storage_state=signed_in)
    yield visitor
    visitor.close()
    assert visitor.troubles.seen == []


def test_an_answer_comes_with_its_reasoning_folded_and_a_link_to_its_events(visitor: Visitor) -> None:
    visitor.hears("greetings", "Hello there!")
    expect(visitor.page.locator("article.person")).to_contain_text("greetings")
    expect(visitor.field).to_be_focused()
    expect(visitor.page.locator("#chat [role=status]")).to_have_text("Hello there!")
    reasoning = visitor.last.locator("details.reasoning")
    expect(reasoning).not_to_have_attribute("open", "")
    expect(reasoning.locator("summary")).to_contain_text("Thought for")
    reasoning.locator("summary").click()
    expect(reasoning).to_contain_text("They greet me")
    expect(visitor.last.get_by_role("link", name="Events")).to_have_attribute("href", f"/responses/{visitor.uid}")
    made = visitor.fetched(visitor.uid)
    assert (made["status"], made["background"], made["store"]) == ("completed", True, True)


def test_markdown_is_shown_when_done_and_nothing_of_it_runs(visitor: Visitor) -> None:
    visitor.hears("markdown", "A title")
    message = visitor.last.locator(".message")
    expect(message.get_by_role("heading", name="A title")).to_be_visible()
    expect(message.locator("strong")).to_have_text("bold")
    expect(message.locator("li")).to_have_count(2)
    expect(message.locator("td")).to_have_text(["1", "2"])
    expect(message.locator("pre code")).to_have_text('print("<b>hi</b>")')
    expect(message.locator("a")).to_have_attribute("href", "https://example.org/x")
    expect(message).to_contain_text("[a trap](javascript:alert(1))")
    expect(message).to_contain_text("<script>")
    expect(message.locator("script, img, b")).to_have_count(0)
    assert "owned" not in visitor.page.title()


def test_stop_ends_it_at_the_server_too(visitor: Visitor) -> None:
    visitor.say("endlessly")
    expect(visitor.last).to_contain_text("word2")
    visitor.page.keyboard.press("Escape")
    expect(visitor.last).to_contain_text("Stopped.")
    expect(visitor.last).to_contain_text("word2")
    assert visitor.fetched(visitor.uid)["status"] == "cancelled"
    expect(visitor.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    visitor.hears("greetings", "Hello there!")


def test_a_reload_keeps_the_stream(visitor: Visitor) -> None:
    visitor.say("slowly")
    expect(visitor.last).to_contain_text("word4")
    visitor.page.reload()
    expect(visitor.page.locator("article.person")).to_contain_text("slowly")
    expect(visitor.page.get_by_role("button", name="Stop")).to_be_visible()
    visitor.ended()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)
    visitor.page.reload()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)


def test_a_connection_that_breaks_is_taken_up_where_it_broke(visitor: Visitor) -> None:
    asked: list[str] = []

    def cut(route: Route) -> None:
        """Give the page the beginning of the stream and then nothing more."""
        request = route.request
        with httpx2.stream("POST", request.url, content=request.post_data, headers=request.headers, timeout=30) as answer:
            blocks = ""
            for part in answer.iter_text():
                blocks += part
                if "word2" in blocks:
                    break
        whole = blocks[: blocks.rindex("\n\n") + 2]
        route.fulfill(status=200, content_type="text/event-stream", body=whole + "event: response.output_te")

    visitor.page.route(re.compile(r"/v1/responses$"), cut)
    visitor.page.on("request", lambda request: asked.append(request.url) if "starting_after" in request.url else None)
    visitor.say("slowly")
    visitor.ended()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)
    assert [re.search(r"starting_after=\d+", url) is not None for url in asked] == [True]


def test_what_goes_wrong_is_said_and_can_be_tried_again(visitor: Visitor) -> None:
    visitor.say("breakage")
    alert = visitor.last.get_by_role("alert")
    expect(alert).to_contain_text("out of sorts")
    visitor.last.get_by_role("button", name="Try again").click()
    expect(visitor.last).to_contain_text("2 of 2")
    expect(alert).to_contain_text("out of sorts")
