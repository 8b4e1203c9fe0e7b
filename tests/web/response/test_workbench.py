"""Turns, timeline, events and inspector of a response with reasoning and a tool, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.support.server.serve_command import Server
from tests.support.web.axe import violations
from tests.support.web.browser import opened_page

pytestmark = pytest.mark.browser
DEMO = {"type": "mcp", "server_label": "demo", "require_approval": "never"}


@pytest.fixture(scope="module")
def chat_server(tools_server: Server) -> Server:
    """Return the server with tools."""
    return tools_server


@dataclass(frozen=True, slots=True)
class Asked:
    """Response with a listing, a call and a message: its page and the ids of the items."""

    url: str
    call: str
    message: str


@pytest.fixture(scope="module")
def asked(chat_server: Server) -> Asked:
    """Ask for a call of the demo server."""
    body = chat_server.ask(model="chat", input="remotely", tools=[DEMO]).json()
    items = {item["type"]: item["id"] for item in body["output"]}
    assert list(items) == ["mcp_list_tools", "mcp_call", "message"]
    return Asked(f"{chat_server.url}/responses/{body['id']}", items["mcp_call"], items["message"])


@pytest.fixture
def page(chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a wide page as the operator, which must report no error until the end."""
    with opened_page(chromium, storage_state=signed_in, viewport={"width": 1440, "height": 900}) as page:
        yield page


def turn(page: Page, uid: str) -> Locator:
    return page.locator(f'.turn [data-item="{uid}"]')


def selected_bars(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Timeline").get_by_role("option", selected=True)


def inspector(page: Page) -> Locator:
    return page.locator("#selected")


def test_click_selects_the_same_item_in_turns_timeline_and_events_and_the_address_holds_it(page: Page, asked: Asked) -> None:
    page.goto(asked.url)
    expect(inspector(page)).to_be_empty()
    turn(page, asked.call).locator(".head").click()
    expect(turn(page, asked.call)).to_have_attribute("aria-current", "true")
    # The bars of the call: its run, and its arguments if they took time.
    expect(selected_bars(page).first).to_have_attribute("data-item", asked.call)
    expect(inspector(page)).to_contain_text(re.compile(r"Selected: get_weather · demo\s+events \d+–\d+ · tokens \d+–\d+"))
    expect(inspector(page)).to_contain_text("mcp_call.completed")
    expect(page).to_have_url(f"{asked.url}?selected={asked.call}")

    page.reload()
    expect(turn(page, asked.call)).to_have_attribute("aria-current", "true")
    expect(selected_bars(page).first).to_have_attribute("data-item", asked.call)
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("link", name="Open as a page").click()
    rows = page.locator("#events tr[aria-current=true]")
    expect(rows.first).to_contain_text("response.output_item.added")
    expect(rows.last).to_contain_text("response.output_item.done")
    shown = inspector(page).get_by_role("link", name="events").inner_text()
    assert shown == f"events {rows.first.locator('a').inner_text()}–{rows.last.locator('a').inner_text()}"

    # Another event selects its item.
    page.locator("#events tr", has_text="response.output_text.done").locator("td").nth(3).click()
    expect(inspector(page)).to_contain_text("Assistant message")
    expect(selected_bars(page)).to_have_attribute("data-item", asked.message)
    expect(page).to_have_url(f"{asked.url}/events?selected={asked.message}")
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{asked.url}/events")
    expect(page.locator("[aria-current=true], [aria-selected=true]")).to_have_count(0)
    expect(inspector(page)).to_be_empty()


def test_keys_select_a_bar_and_a_turn(page: Page, asked: Asked, axe: str) -> None:
    page.goto(asked.url)
    timeline = page.get_by_role("listbox", name="Timeline")
    timeline.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(turn(page, asked.message)).to_have_attribute("aria-current", "true")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(turn(page, asked.call)).to_have_attribute("aria-current", "true")
    expect(turn(page, asked.message)).not_to_have_attribute("aria-current", "true")
    turn(page, asked.message).focus()
    page.keyboard.press("Enter")
    expect(selected_bars(page)).to_have_attribute("data-item", asked.message)
    expect(inspector(page)).to_contain_text("Assistant message")
    assert violations(page, axe) == []


def test_parts_of_the_inspector_stand_beside_the_turns(page: Page, asked: Asked, axe: str) -> None:
    page.goto(asked.url, wait_until="networkidle")
    parts = page.get_by_role("tablist", name="Inspector")
    before = parts.bounding_box()
    parts.get_by_role("tab", name="Properties").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(parts.get_by_role("tab", name="Events")).to_be_focused()
    expect(page.get_by_role("link", name="Open as a page")).to_be_visible()
    # The tabs stay under the pointer.
    assert parts.bounding_box() == before
    # An event selects its turn; the prompt then has the tokens of the item.
    events = page.get_by_role("tabpanel", name="Events")
    page.keyboard.press(" ")
    # It loads the part again.
    expect(page.locator("#inspector-part[aria-busy]")).to_have_count(0)
    events.locator("tr", has_text="response.mcp_call.completed").locator("td").nth(3).click()
    expect(turn(page, asked.call)).to_have_attribute("aria-current", "true")
    assert violations(page, axe) == []
    inspector(page).get_by_role("link", name="tokens").click()
    prompt = page.get_by_role("tabpanel", name="Prompt")
    expect(prompt.locator("mark.selected")).to_contain_text("Oslo")
    expect(turn(page, asked.call)).to_be_visible()
    page.reload()
    expect(prompt.locator("mark.selected")).to_contain_text("Oslo")
    prompt.get_by_role("link", name="Round 1").click()
    expect(prompt).to_contain_text("Prompt of round 1")
    parts.get_by_role("tab", name="Properties").click()
    expect(page.locator("#inspector-properties")).to_contain_text("Finish reason")
    expect(page).to_have_url(f"{asked.url}?selected={asked.call}")


def test_a_tab_opens_its_page_before_the_scripts_run(page: Page, asked: Asked) -> None:
    page.route(
        "**/inspector_tabs*.js",
        lambda route: route.fulfill(content_type="text/javascript", body="export const start = () => {};"),
    )
    page.goto(asked.url)
    page.get_by_role("tab", name="Events").click()
    expect(page).to_have_url(f"{asked.url}/events")
    expect(page.get_by_role("main")).to_contain_text("response.completed")


def test_event_page_selects_the_item_of_the_event(page: Page, asked: Asked) -> None:
    page.goto(f"{asked.url}?selected={asked.call}")
    inspector(page).get_by_role("listitem").first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("response.output_item.added")
    expect(selected_bars(page).first).to_have_attribute("data-item", asked.call)


def test_shared_link_shows_the_selection_without_scripts(chromium: Browser, signed_in: StorageState, asked: Asked) -> None:
    context = chromium.new_context(storage_state=signed_in, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{asked.url}?selected={asked.call}")
    expect(turn(page, asked.call)).to_have_attribute("aria-current", "true")
    expect(selected_bars(page).first).to_have_attribute("data-item", asked.call)
    expect(inspector(page)).to_contain_text("get_weather · demo")
    page.goto(f"{asked.url}?selected=nothing")
    expect(inspector(page)).to_be_empty()
    context.close()


def number_of(page: Page) -> int:
    return int(page.url.rpartition("/")[2])


def test_keys_and_slider_step_through_the_events_with_the_state_beside(page: Page, asked: Asked, axe: str) -> None:
    page.goto(f"{asked.url}/events")
    page.get_by_role("link", name="Step through").click()
    heading, state = page.get_by_role("heading", level=2).first, page.locator("#state")
    expect(heading).to_contain_text("Event 0 · response.created")
    # The keys work once the module is loaded.
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("Event 0 of"))
    page.keyboard.press("ArrowRight")
    expect(heading).to_contain_text("Event 1 · response.in_progress")
    expect(page).to_have_url(f"{asked.url}/events/1")
    expect(state.locator("[data-item]")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(state.get_by_role("article", name="Tools of demo")).to_be_visible()
    page.keyboard.press("k")
    expect(heading).to_contain_text("Event 1 ·")
    expect(state.locator("[data-item]")).to_have_count(0)
    # The slider goes to any event; the item of the event is selected.
    slider = page.get_by_label("Event", exact=True).and_(page.get_by_role("slider"))
    last = int(slider.get_attribute("max") or 0)
    slider.fill(str(last - 1))
    expect(heading).to_contain_text("response.output_item.done")
    expect(state).to_contain_text("It is mild in Oslo.")
    expect(inspector(page)).to_contain_text("Assistant message")
    expect(selected_bars(page)).to_have_attribute("data-item", asked.message)
    assert violations(page, axe) == []
    # The first Escape leaves the slider.
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{asked.url}/events")


def test_play_shows_the_events_at_the_recorded_speed_until_paused(page: Page, chat_server: Server) -> None:
    uid = chat_server.ask(model="chat", input="slowly").json()["id"]
    url = f"{chat_server.url}/responses/{uid}/events"
    times = page.request.get(f"{url}/times").json()
    page.goto(f"{url}/0")
    play, state = page.locator("#player button"), page.locator("#state")
    page.evaluate(
        "document.querySelector('#player button').addEventListener('click', () => (window.begin ??= performance.now()))"
    )
    play.click()
    expect(state).to_contain_text("word3 ")
    elapsed, shown, heading = page.evaluate(
        "[performance.now() - window.begin, Number(document.querySelector('#player input').value), "
        "document.querySelectorAll('#event h2')[1].textContent]"
    )
    play.click()
    expect(play).to_have_text("Play")
    assert elapsed >= times[shown] - 1
    assert heading.startswith(f"Response after event {shown} · in_progress ")
    # The state at the pause, and no more of it.
    expect(page.get_by_role("heading", level=2).first).to_contain_text(f"Event {number_of(page)} ·")
    assert shown <= number_of(page) < len(times) - 1
    expect(state).to_contain_text("word3")
    expect(state).not_to_contain_text("word59")
    page.get_by_role("slider").fill(str(len(times) - 4))
    expect(page.get_by_role("heading", level=2).first).to_contain_text(f"Event {len(times) - 4} ·")
    play.click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("response.completed")
    expect(state).to_contain_text("word59")


def test_play_with_reduced_motion_shows_an_item_when_it_is_done(
    chromium: Browser, signed_in: StorageState, chat_server: Server
) -> None:
    uid = chat_server.ask(model="chat", input="slowly").json()["id"]
    context = chromium.new_context(storage_state=signed_in, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{chat_server.url}/responses/{uid}/events/0")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("Event 0 of"))
    page.locator("#player button").click()
    expect(page.locator("#player output")).to_contain_text(re.compile(r"^\d\d of"))
    text, place = page.evaluate("[document.querySelector('#state').textContent, document.querySelector('#player input').value]")
    assert "word" not in text, place
    expect(page.locator("#state")).to_contain_text("word59")
    context.close()


def test_json_is_coloured_folds_and_is_copied_whole(page: Page, asked: Asked, axe: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{asked.url}/events/0")
    block = page.get_by_role("group", name="Event", exact=True)
    expect(block.locator(".hljs-attr", has_text='"sequence_number"')).to_have_count(1)
    expect(block.locator(".hljs-string", has_text='"response.created"')).to_have_count(1)
    expect(block.locator(".hljs-number", has_text=re.compile("^0$")).first).to_be_visible()
    inside = block.locator("div", has_text='"object"')
    fold = block.locator("details", has=page.locator("summary", has_text='"response"')).first.locator("> summary")
    expect(inside).to_be_visible()
    fold.press("Enter")
    expect(inside).to_be_hidden()
    assert violations(page, axe) == []
    page.get_by_role("button", name="Copy event").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    stored = page.request.get(f"{asked.url}/events/0?as=json").json()
    assert json.loads(copied) == stored
    # The next event has colours and the button too.
    page.keyboard.press("ArrowRight")
    expect(block.locator(".hljs-string", has_text='"response.in_progress"')).to_have_count(1)
    expect(page.get_by_role("button", name="Copy event")).to_be_visible()


def test_request_page_has_foldable_json_and_coloured_code_and_lines(page: Page, asked: Asked) -> None:
    page.goto(f"{asked.url}/wire")
    request = page.get_by_role("group", name="Request", exact=True)
    request.locator("summary", has_text='"tools"').click()
    expect(request.locator("div", has_text='"server_label"')).to_be_hidden()
    # WCAG 2.2, 2.5.8: closed blocks stand close to each other.
    assert page.locator(".block > summary").evaluate_all("all => Math.min(...all.map((one) => one.offsetHeight))") >= 24
    page.get_by_text("Reproduce: Python").click()
    expect(page.locator("#python .hljs-keyword").first).to_have_text("import")
    lines = page.locator("pre.wire")
    expect(lines.locator(".hljs-keyword").first).to_have_text("event:")
    expect(lines.locator(".hljs-attr").first).to_have_text('"type"')
    expect(lines).to_contain_text("data: [DONE]")


def test_long_and_hostile_json_stays_text(page: Page, chat_server: Server) -> None:
    uid = chat_server.ask(model="chat", input="markdown").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/events")
    page.locator("#events tr", has_text="response.output_text.done").get_by_role("link").click()
    block = page.get_by_role("group", name="Event", exact=True)
    expect(block.locator(".hljs-string", has_text="<script>document.title")).to_have_count(1)
    assert page.evaluate("document.querySelectorAll('#event img, #event script').length") == 0
    expect(page).not_to_have_title("owned")


def test_words_of_a_table_are_whole_on_a_phone(page: Page, chat_server: Server) -> None:
    table = "| Berth | Ship | Cargo |\n|---|---|---|\n| 1 | Borealis, with a long name that needs the whole line | 1,200 |"
    messages = [{"role": "assistant", "content": table}, {"role": "user", "content": "greetings"}]
    uid = chat_server.ask(model="chat", input=messages).json()["id"]
    page.set_viewport_size({"width": 320, "height": 844})
    page.goto(f"{chat_server.url}/responses/{uid}")
    heights = page.locator(".markdown th").evaluate_all("cells => cells.map(cell => cell.clientHeight)")
    assert len(heights) == 3
    assert max(heights) < 40


def test_json_of_calls_and_answers_has_colours_and_a_copy_button(
    chat_server: Server, page: Page, asked: Asked, axe: str
) -> None:
    page.goto(asked.url)
    arguments = turn(page, asked.call).get_by_role("group", name="Arguments")
    expect(arguments.locator(".hljs-attr")).to_have_text('"city"')
    expect(arguments.get_by_role("button", name="Copy code")).to_be_visible()
    answer = chat_server.ask(model="chat", input="structurally").json()
    page.goto(f"{chat_server.url}/responses/{answer['id']}")
    text = turn(page, answer["output"][0]["id"]).locator("pre code")
    expect(text.locator(".hljs-attr")).to_have_text(['"name"', '"age"'])
    assert json.loads(text.inner_text()) == {"name": "Ada", "age": 36}
    assert violations(page, axe) == []


def test_boxes_of_a_call_show_their_names_and_the_inspector_the_number_of_tools(page: Page, asked: Asked) -> None:
    page.goto(asked.url)
    for name in ("Arguments", "Result"):
        box = turn(page, asked.call).get_by_role("group", name=name, exact=True)
        shown = box.evaluate("box => (({content, display}) => [content, display])(getComputedStyle(box, '::before'))")
        assert shown == [f'"{name}"', "block"]
    expect(page.locator("#inspector-properties div", has=page.get_by_text("Tools", exact=True)).last).to_contain_text(
        "demo (3)"
    )


def test_current_tab_is_in_view_on_a_phone(page: Page, asked: Asked) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{asked.url}/check", wait_until="networkidle")
    expect(page.get_by_role("link", name="Validation")).to_be_in_viewport(ratio=0.95)


def test_pages_do_not_jump_while_they_load(page: Page, chat_server: Server, asked: Asked) -> None:
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries()) window.shift += one.value })"
        ".observe({ type: 'layout-shift', buffered: true })"
    )
    with_selection = [f"{asked.url}{path}?selected={asked.call}" for path in ("", "/events", "/events/10", "/wire")]
    # Scripts add controls to these.
    with_controls = [f"{asked.url}?part=events", *(chat_server.url + path for path in ("/connect", "/files", "/vector-stores"))]
    for urls, widths in ((with_selection, (1440, 390)), (with_controls, (1024, 390))):
        for width in widths:
            page.set_viewport_size({"width": width, "height": 844})
            for url in urls:
                page.goto(url, wait_until="networkidle")
                assert page.evaluate("window.shift") < 0.01, (url, width)


def test_inspector_is_a_sheet_from_below_on_a_phone(page: Page, asked: Asked, axe: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{asked.url}?selected={asked.call}")
    expect(page.locator("#uid")).to_be_hidden()
    opener, sheet = page.get_by_role("button", name="Properties"), page.get_by_role("dialog", name="Properties")
    opener.click()
    expect(sheet.locator("#uid")).to_be_visible()
    expect(sheet).to_contain_text("Selected: get_weather")
    box = sheet.bounding_box()
    assert box
    assert (box["x"], box["width"], box["y"] + box["height"]) == (0, 390, 844)
    assert violations(page, axe) == []
    # The focus stays inside: on nothing of the page behind the sheet.
    for _ in range(15):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.get_by_role("button", name="Close").focus()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(opener).to_be_focused()
    expect(page).to_have_url(f"{asked.url}?selected={asked.call}")
    opener.click()
    page.mouse.click(195, 40)
    expect(sheet).to_be_hidden()
    opener.click()
    page.get_by_role("button", name="Close").click()
    expect(sheet).to_be_hidden()
    expect(inspector(page)).to_contain_text("get_weather")


def test_inspector_unfolds_on_a_phone_without_scripts(chromium: Browser, signed_in: StorageState, asked: Asked) -> None:
    context = chromium.new_context(storage_state=signed_in, java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(asked.url)
    page.locator("summary", has_text="Properties").click()
    expect(page.get_by_role("tab")).to_have_count(0)
    expect(page.locator("#uid")).to_be_visible()
    context.close()
