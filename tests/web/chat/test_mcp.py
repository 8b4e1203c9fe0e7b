"""A person sees calls of the demo MCP server, and approves or denies these, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.support.server.serve_command import Server
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
BORDER = "box => getComputedStyle(box).borderColor"
# Adds up what moves from now on, also shortly after an input.
SHIFTS = """window.moved = 0; new PerformanceObserver((list) => { for (const one of list.getEntries()) window.moved += one.value; })
  .observe({ type: "layout-shift" })"""


FRAGMENT = """<article class="card call mcp_list_tools" aria-label="Tools of demo"><div class="head">
<code>demo · tools</code><span class="state">Loading…</span></div></article>"""
# An item that begins, drawn by the module of the pages.
BEGIN_LISTING = """async () => {
  const { OutputItem } = await import("/static/web/output_item.js");
  document.querySelector(".turns").append(new OutputItem({ id: "mcpl_1", type: "mcp_list_tools" }, "/responses/resp_1").element);
}"""


@pytest.fixture(scope="module")
def chat_server(tools_server: Server) -> Server:
    """Return the server with tools."""
    return tools_server


@pytest.fixture
def demo_visitor(visitor: Visitor) -> Visitor:
    """Let the chat use the demo server."""
    visitor.use_server("demo")
    return visitor


def card(visitor: Visitor, name: str) -> Locator:
    return visitor.page.get_by_role("article", name=name)


def test_an_approved_call_runs_and_the_answer_follows(demo_visitor: Visitor) -> None:
    demo_visitor.send("remotely")
    page, approval = demo_visitor.page, card(demo_visitor, "Approval for get_weather of demo")
    expect(page.get_by_text("demo · 3 tools")).to_be_visible()
    expect(approval).to_contain_text('"city": "Oslo"')
    expect(approval).to_be_focused()
    # An open approval has its buttons again after a reload.
    page.reload()
    expect(approval).to_contain_text("Approval needed")
    other = page.context.new_page()
    other.goto(page.url)
    approve = other.get_by_role("button", name="Approve get_weather")
    expect(approve).to_be_visible()
    page.get_by_role("button", name="Approve get_weather").press("Enter")
    call = card(demo_visitor, "Call to get_weather of demo")
    expect(call).to_contain_text("sunny")
    expect(call).to_contain_text("Done")
    expect(demo_visitor.last).to_contain_text("It is mild in Oslo.")
    # A tab that shows the decision as open is refused, and leads to the answer.
    approve.click()
    expect(other.locator(".outcome [role=alert]")).to_contain_text("was already answered")
    other.get_by_role("button", name="Try again").click()
    expect(other.locator("article.model").last).to_contain_text("It is mild in Oslo.")
    expect(other).to_have_url(page.url)
    other.close()
    page.reload()
    expect(call).to_contain_text("sunny")
    expect(approval).to_contain_text("Approved")
    expect(approval).to_contain_text("Answered in resp_")
    # The colour of a call that waits for a person is gone.
    assert approval.evaluate(BORDER) == call.evaluate(BORDER)
    expect(page.get_by_role("button", name="Approve get_weather")).to_have_count(0)


def test_a_list_of_tools_is_loading_and_has_no_arguments(visitor: Visitor) -> None:
    page = visitor.page
    page.route("**/items/mcpl_1/fragment", lambda route: route.fulfill(content_type="text/html", body=FRAGMENT))
    page.evaluate(BEGIN_LISTING)
    listing = card(visitor, "Tools of demo")
    expect(listing).to_contain_text("demo · tools")
    expect(listing.locator(".state")).to_have_text("Loading…")
    expect(listing.locator("pre")).to_be_hidden()


def test_nothing_jumps_when_an_approval_arrives_on_a_phone(demo_visitor: Visitor) -> None:
    page = demo_visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.evaluate(SHIFTS)
    demo_visitor.send("remotely")
    expect(page.get_by_role("button", name="Approve get_weather")).to_be_visible()
    expect(demo_visitor.last.get_by_role("link", name="Events")).to_be_visible()
    # The shifts of a frame are reported behind it.
    assert (
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(window.moved))))") < 0.01
    )


def test_a_denied_call_does_not_run_and_the_reason_is_shown(demo_visitor: Visitor) -> None:
    demo_visitor.send("remotely")
    page, approval = demo_visitor.page, card(demo_visitor, "Approval for get_weather of demo")
    page.get_by_label("Reason to deny get_weather").fill("not unusual")
    page.get_by_role("button", name="Deny get_weather").click()
    expect(demo_visitor.last).to_contain_text("Then I do not look.")
    expect(approval).to_contain_text("Denied")
    page.reload()
    expect(approval).to_contain_text("Reason: not unusual")
    expect(card(demo_visitor, "Call to get_weather of demo")).to_have_count(0)


def test_a_message_denies_an_open_approval(demo_visitor: Visitor) -> None:
    demo_visitor.send("remotely")
    approval = card(demo_visitor, "Approval for get_weather of demo")
    expect(approval).to_contain_text("Approval needed")
    demo_visitor.send_and_wait("greetings", "Hello there!")
    expect(approval).to_contain_text("Denied")


def ask_without_script(visitor: Visitor) -> list[Route]:
    """Let an answer end with a request for an approval, and return the held request for the script of the calls."""
    held: list[Route] = []
    visitor.page.route("**/tool_calls.js", lambda route: held.append(route))
    visitor.send("remotely")
    expect(card(visitor, "Approval for get_weather of demo")).to_contain_text("Approval needed")
    visitor.wait_for_end()
    return held


def test_a_message_before_the_script_of_calls_has_loaded_answers_the_approval(demo_visitor: Visitor) -> None:
    # The page loads the script when the first call has ended; a person may type the next message meanwhile.
    page, held = demo_visitor.page, ask_without_script(demo_visitor)
    demo_visitor.send_and_wait("greetings", "Hello there!")
    answered = demo_visitor.uid
    (script,) = held
    with page.expect_response("**/tool_calls.js"):
        script.continue_()
    # The script adds no turn of its own.
    page.evaluate("async (url) => { await import(url) }", script.request.url)
    expect(demo_visitor.answers).to_have_count(2)
    assert demo_visitor.uid == answered


def test_an_approval_takes_no_focus_from_a_message_that_is_being_written(demo_visitor: Visitor) -> None:
    page, held = demo_visitor.page, ask_without_script(demo_visitor)
    demo_visitor.field.fill("A draft")
    held[0].continue_()
    expect(page.get_by_role("button", name="Approve get_weather")).to_be_visible()
    expect(demo_visitor.field).to_be_focused()


def test_server_is_offered_only_where_it_is_chosen(demo_visitor: Visitor) -> None:
    page = demo_visitor.page
    demo_visitor.use_server("demo", chosen=False)
    demo_visitor.send_and_wait("greetings", "Hello there!")
    assert demo_visitor.fetched(demo_visitor.uid)["tools"] == []
    page.goto(f"{demo_visitor.server.url}/chat")
    expect(page.get_by_label("demo", exact=True)).not_to_be_checked()
    # The choice is kept for the next visit; a new visitor has chosen nothing.
    demo_visitor.use_server("demo")
    page.reload()
    expect(page.get_by_label("demo", exact=True)).to_be_checked()
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.get_by_label("demo", exact=True)).not_to_be_checked()


def test_the_response_page_shows_the_call_the_rounds_and_the_decision(demo_visitor: Visitor) -> None:
    demo_visitor.send("remotely")
    demo_visitor.page.get_by_role("button", name="Approve get_weather").click()
    expect(demo_visitor.last).to_contain_text("It is mild in Oslo.")
    demo_visitor.wait_for_end()
    second = demo_visitor.uid
    first = demo_visitor.fetched(second)["previous_response_id"]
    page = demo_visitor.page
    page.goto(f"{demo_visitor.server.url}/responses/{second}")
    expect(page.locator("#answered")).to_contain_text("sunny")
    timeline = page.get_by_role("listbox", name="Timeline")
    expect(timeline.get_by_role("group")).to_have_count(2)
    expect(timeline.get_by_role("group", name="Round 1").get_by_role("option", name="get_weather · demo")).to_have_count(1)
    expect(timeline.get_by_role("group", name="Round 2").get_by_role("option", name="Text")).to_have_count(1)
    expect(page.locator(".timeline figcaption")).to_have_count(1)
    page.goto(f"{demo_visitor.server.url}/responses/{first}")
    expect(page.locator("#answered")).to_contain_text("get_weather: Get the current weather in a given location.")
    expect(page.locator("#answered .mcp_approval_request .output")).to_contain_text("Approved")
    expect(timeline.get_by_role("option", name="demo · 3 tools")).to_have_count(1)
