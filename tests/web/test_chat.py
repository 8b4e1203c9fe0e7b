"""A person talks to a model in a real browser: sends, watches, stops, reloads, branches, answers calls."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Route, StorageState, ViewportSize, expect, sync_playwright

from tests.run import BROWSER, NO_BROWSER
from tests.server.serving import Server
from tests.web.chatting import SLOWLY, Visitor, tape

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
CHROMIUM = shutil.which(BROWSER)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that says what the last word of a message asks for."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    folder = tmp_path_factory.mktemp("chat")
    server = Server(folder / "data", "--engine", tape(folder))
    try:
        yield server.ready()
    finally:
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


def test_odd_and_huge_output_breaks_nothing(visitor: Visitor) -> None:
    choose(visitor, "weather", by_itself=False)
    visitor.hears("oddly", "␛[31mred")
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.say("hugely")
    card = visitor.page.get_by_role("region", name="Call of get_weather")
    expect(card.get_by_role("button", name=re.compile("more characters"))).to_be_visible()
    expect(visitor.page.get_by_label("Output of get_weather")).to_be_focused()
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


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


def test_a_second_turn_continues_the_first(visitor: Visitor) -> None:
    visitor.hears("greetings", "Hello there!")
    first = visitor.uid
    visitor.hears("twice", "answer.")
    expect(visitor.answers).to_have_count(2)
    assert visitor.fetched(visitor.uid)["previous_response_id"] == first
    visitor.page.goto(f"{visitor.server.url}/chat/{first}")
    expect(visitor.last).to_contain_text("Hello there!")
    expect(visitor.answers).to_have_count(1)


def test_regenerating_branches_and_the_branches_can_be_gone_through(visitor: Visitor) -> None:
    visitor.hears("greetings", "Hello there!")
    visitor.hears("twice", "answer.")
    first = visitor.last.locator(".message").text_content() or ""
    visitor.last.get_by_role("button", name="Regenerate").click()
    expect(visitor.last).to_contain_text("2 of 2")
    second = visitor.last.locator(".message").text_content() or ""
    assert first != second
    visitor.hears("twice", "answer.")
    expect(visitor.answers).to_have_count(3)

    branches = visitor.answers.nth(1).get_by_role("group", name="Branches")
    branches.get_by_role("button", name="Previous branch").click()
    expect(visitor.answers).to_have_count(2)
    expect(visitor.last).to_contain_text(first)
    # Back to the other one, and to what followed it.
    branches.get_by_role("button", name="Next branch").click()
    expect(visitor.answers).to_have_count(3)
    expect(visitor.answers.nth(1)).to_contain_text(second)
    visitor.page.reload()
    expect(visitor.answers.nth(1)).to_contain_text("2 of 2")


def test_an_edited_message_is_a_branch_also_where_it_was_the_first(visitor: Visitor) -> None:
    visitor.hears("twice", "answer.")
    first = visitor.uid
    visitor.page.get_by_role("button", name="Edit this message").click()
    editor = visitor.page.get_by_label("Edited message")
    expect(editor).to_have_value("twice")
    expect(editor).to_be_focused()
    editor.press("Escape")
    expect(editor).to_have_count(0)
    visitor.page.get_by_role("button", name="Edit this message").click()
    editor.fill("warm greetings")
    editor.press("Enter")
    expect(visitor.last).to_contain_text("Hello again!")
    expect(visitor.last).to_contain_text("2 of 2")
    expect(visitor.page.locator("article.person")).to_contain_text("warm greetings")
    made = visitor.fetched(visitor.uid)
    assert (made["previous_response_id"], made["metadata"]) == (None, {"branch_of": first})
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Previous branch").click()
    expect(visitor.last).to_contain_text("answer.")
    assert visitor.uid == first


def test_conversations_are_listed_under_their_first_words_and_found(visitor: Visitor) -> None:
    visitor.hears("<b>xylophones</b> twice", "answer.")
    first = visitor.uid
    visitor.hears("greetings", "Hello there!")
    threads = visitor.page.get_by_role("navigation", name="Conversations")
    entry = threads.get_by_role("link", name="<b>xylophones</b> twice")
    expect(entry).to_have_count(1)
    expect(entry).to_have_attribute("aria-current", "page")
    assert first not in (entry.get_attribute("href") or "")

    threads.get_by_role("link", name="New conversation").click()
    expect(visitor.answers).to_have_count(0)
    search = threads.get_by_role("searchbox")
    search.fill("XYLOPHONES")
    search.press("Enter")
    expect(threads.locator(".threads li")).to_have_count(1)
    entry.click()
    expect(visitor.answers).to_have_count(2)
    visitor.page.go_back()
    search.fill("nobody said this")
    search.press("Enter")
    expect(threads).to_contain_text("Nothing was found.")


def choose(visitor: Visitor, *names: str, by_itself: bool = True) -> None:
    """Switch demonstration tools on."""
    settings = visitor.page.locator("details.settings > summary")
    settings.click()
    for name in names:
        visitor.page.get_by_label(name, exact=True).check()
    visitor.page.get_by_label("answer by themselves").set_checked(by_itself)
    settings.click()


def test_a_demonstration_tool_answers_by_itself(visitor: Visitor) -> None:
    choose(visitor, "weather")
    visitor.hears("weatherwise", "It is fine in Oslo.")
    card = visitor.page.get_by_role("region", name="Call of get_weather")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("answered")
    expect(card).to_contain_text('"source":"sample"')
    made = visitor.fetched(visitor.uid)
    assert visitor.fetched(made["previous_response_id"])["output"][-1]["type"] == "function_call"
    visitor.page.reload()
    expect(card).to_contain_text('"source":"sample"')
    expect(visitor.last).to_contain_text("It is fine in Oslo.")


def test_a_person_writes_what_a_tool_returns(visitor: Visitor) -> None:
    choose(visitor, "weather", by_itself=False)
    visitor.say("handmade")
    output = visitor.page.get_by_label("Output of get_weather")
    expect(output).to_be_focused()
    # A call still waits after a reload.
    visitor.page.reload()
    expect(output).to_be_visible()
    output.fill("snowfall")
    output.press("Enter")
    expect(visitor.last).to_contain_text("So it snows.")
    expect(visitor.page.get_by_role("region", name="Call of get_weather")).to_contain_text("snowfall")


def test_a_call_that_nobody_answers_does_not_block_the_thread(visitor: Visitor) -> None:
    choose(visitor, "weather", by_itself=False)
    visitor.say("handmade")
    expect(visitor.page.get_by_label("Output of get_weather")).to_be_visible()
    visitor.hears("greetings", "Hello there!")
    expect(visitor.page.get_by_role("region", name="Call of get_weather")).to_contain_text("Nobody answered this call.")


def test_parameters_go_with_the_request_and_are_remembered(visitor: Visitor) -> None:
    visitor.page.locator("details.settings > summary").click()
    visitor.page.get_by_label("Instructions").fill("Be kind.")
    visitor.page.get_by_label("Temperature").fill("0.3")
    visitor.page.get_by_label("Longest answer, tokens").fill("16")
    visitor.page.get_by_label("Reasoning effort").select_option("low")
    visitor.page.keyboard.press("Tab")
    visitor.hears("slowly", "It reached the limit of output tokens.")
    made = visitor.fetched(visitor.uid)
    assert (made["instructions"], made["temperature"], made["max_output_tokens"]) == ("Be kind.", 0.3, 16)
    assert made["reasoning"]["effort"] == "low"
    visitor.page.goto(f"{visitor.server.url}/chat")
    expect(visitor.page.get_by_label("Instructions")).to_have_value("Be kind.")


def test_what_was_typed_outlives_a_reload_and_shift_enter_begins_a_line(visitor: Visitor) -> None:
    visitor.field.press_sequentially("one")
    visitor.field.press("Shift+Enter")
    visitor.field.press_sequentially("two")
    visitor.page.reload()
    expect(visitor.field).to_have_value("one\ntwo")
    expect(visitor.answers).to_have_count(0)


def test_on_a_phone_nothing_is_wider_than_the_screen(server: Server, browser: Browser, signed_in: StorageState) -> None:
    size: ViewportSize = {"width": 360, "height": 640}
    visitor = Visitor(server, browser, storage_state=signed_in, viewport=size, has_touch=True, color_scheme="dark")
    visitor.hears("markdown", "A title")
    expect(visitor.field).to_be_in_viewport()
    threads = visitor.page.get_by_role("navigation", name="Conversations")
    expect(threads).to_be_hidden()
    visitor.page.get_by_role("button", name="Conversations").click()
    expect(threads.get_by_role("link", name="markdown").first).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(threads).to_be_hidden()
    visitor.page.locator("details.settings > summary").click()
    expect(visitor.page.get_by_label("Instructions")).to_be_in_viewport()
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    visitor.close()
    assert visitor.troubles.seen == []


def test_without_scripts_it_says_what_is_missing(server: Server, browser: Browser, signed_in: StorageState) -> None:
    visitor = Visitor(server, browser, storage_state=signed_in, java_script_enabled=False)
    missing = visitor.page.locator("noscript p")
    expect(missing).to_be_visible()
    expect(missing.locator("a")).to_have_attribute("href", "/responses")
    visitor.close()
