"""The response list and the pages of a response in a real browser: the way back, the address, a connection that is lost, the look."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.web.browser import LIMIT_MS, opened_page
from tests.support.web.chat_visitor import held

pytestmark = pytest.mark.browser
MARKDOWN_HEAVY = "markdown"


@pytest.fixture
def page(chat_server: Server, chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a page as a signed-in user. Console errors of a lost connection are expected."""
    context = chromium.new_context(storage_state=signed_in)
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    expect.set_options(timeout=LIMIT_MS)
    yield page
    context.close()


@pytest.fixture(scope="module")
def many(chat_server: Server) -> list[str]:
    """More responses than a page of the list shows, the newest first."""
    return [chat_server.ask(model="chat", input=f"number {n} twice").json()["id"] for n in range(55)][::-1]


def test_esc_leads_back_to_the_filters_the_page_and_the_row(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?q=number&status=completed")
    page.get_by_role("link", name="Older").click()
    expect(page).to_have_url(re.compile(r"after=\d+"))
    url = page.url
    row = page.locator("#rows tbody tr").nth(2).locator("a.open")
    href = row.get_attribute("href")
    row.click()
    expect(page).to_have_url(f"{chat_server.url}{href}")
    expect(page.locator("h1")).to_contain_text("number")
    # Also behind some of its views.
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("link", name="0", exact=True).click()
    expect(page.locator("h2").first).to_contain_text("Event 0")
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{chat_server.url}{href}/events")
    page.keyboard.press("Escape")
    expect(page).to_have_url(url)
    expect(page.locator(f'#rows a[href="{href}"]')).to_be_focused()
    # The link does the same for those who point.
    page.keyboard.press("Enter")
    expect(page.locator(".place")).to_contain_text("3 of ")
    page.get_by_role("link", name="Completed, “number”").click()
    expect(page).to_have_url(url)
    expect(page.locator(f'#rows a[href="{href}"]')).to_be_focused()


def test_a_response_that_was_not_opened_from_a_list_leads_to_the_list(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses/{many[0]}")
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{chat_server.url}/responses")


@pytest.mark.parametrize(
    ("keys", "address"), [(["j", "Enter"], "/responses/{newest}"), (["/", *"number", "Enter"], "/responses?q=number")]
)
def test_keys_pressed_before_the_modules_run_take_effect(
    chat_server: Server, page: Page, many: list[str], keys: list[str], address: str
) -> None:
    script = re.compile(r"/list[.\w]*\.js")
    waiting: list[Route] = []
    page.route(script, lambda route: waiting.append(route))
    with page.expect_request(script):
        page.goto(f"{chat_server.url}/responses", wait_until="commit")
    expect(page.locator("#rows a.open").first).to_be_visible()
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(":focus")).to_have_count(0)
    waiting[0].continue_()
    expect(page).to_have_url(chat_server.url + address.format(newest=many[0]))


def test_the_address_has_no_empty_filters(chat_server: Server, page: Page, many: list[str]) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{chat_server.url}/responses")
    page.get_by_label("Status").select_option("completed")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(f"{chat_server.url}/responses?status=completed")
    assert not [url for url in requests if "model=&" in url]
    expect(page.locator("details[open]")).to_have_count(0)


def test_the_address_has_no_empty_filters_without_scripts(
    chat_server: Server, chromium: Browser, signed_in: StorageState
) -> None:
    context = chromium.new_context(storage_state=signed_in, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{chat_server.url}/responses")
    page.get_by_placeholder("Search inputs").fill("number")
    page.get_by_placeholder("Search inputs").press("Enter")
    expect(page).to_have_url(f"{chat_server.url}/responses?q=number")
    context.close()


def test_a_pasted_id_finds_its_response(chat_server: Server, page: Page, many: list[str], subtests: pytest.Subtests) -> None:
    answer = chat_server.ask(model="chat", input="number 0 twice")
    for text in (answer.json()["id"], answer.headers["x-request-id"], answer.json()["output"][0]["id"]):
        with subtests.test(text=text):
            page.goto(f"{chat_server.url}/responses")
            page.keyboard.press("/")
            page.keyboard.type(text)
            page.keyboard.press("Enter")
            expect(page.locator("#rows tbody tr")).to_have_count(1)
            expect(page.locator("#rows a.open")).to_have_attribute("href", f"/responses/{answer.json()['id']}")


def test_the_duration_is_seen_at_1280_beside_long_states(chat_server: Server, page: Page) -> None:
    body = {"model": "chat", "messages": [{"role": "user", "content": "greetings"}], "store": True}
    headers = {"Authorization": f"Bearer {chat_server.key}"}
    plain_http.request("POST", f"{chat_server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{chat_server.url}/responses")
    expect(page.locator("#rows .format").first).to_be_visible()
    assert page.locator(".scroll").evaluate("box => box.scrollWidth <= box.clientWidth")


def test_a_row_has_two_lines_on_a_phone_and_opens_its_page(chat_server: Server, page: Page) -> None:
    body = {"model": "chat", "messages": [{"role": "user", "content": "greetings"}], "store": True}
    headers = {"Authorization": f"Bearer {chat_server.key}"}
    plain_http.request("POST", f"{chat_server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    chat_server.ask(model="chat", input="slowly", max_output_tokens=16)
    page.set_viewport_size({"width": 390, "height": 844})
    for query in ("", "?sort=first"):
        page.goto(f"{chat_server.url}/responses{query}")
        heights = page.locator("#rows tbody tr:not(.refused)").evaluate_all("rows => rows.map(row => row.offsetHeight)")
        assert len(heights) > 1
        assert max(heights) < 66
    row = page.locator("#rows tbody tr", has=page.locator("a.open")).first
    row.locator(".pick input").check()
    expect(page.get_by_role("button", name="Compare")).to_be_visible()
    row.locator(".pick input").uncheck()
    href = row.locator("a.open").get_attribute("href")
    # The link lies over the texts.
    row.locator("p").scroll_into_view_if_needed()
    box = row.locator("p").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page).to_have_url(f"{chat_server.url}{href}")


def test_a_list_without_hits_has_one_button(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?q=nowhere-at-all")
    button = page.locator(".empty .button")
    expect(button).to_have_count(1)
    button.click()
    expect(page.locator("#rows a.open").first).to_be_visible()


def test_a_live_list_keeps_the_focus_the_ticks_and_the_elements(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?live=1")
    href = page.locator("#rows a.open").first.get_attribute("href")
    row = page.locator("#rows tbody tr").filter(has=page.locator(f"a.open[href='{href}']"))
    link = row.locator("a.open")
    row.get_by_role("checkbox").check()
    link.focus()
    row.evaluate("(one) => (one.isSame = true)")
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    expect(page.locator("#rows tbody tr").first.locator("a.open")).to_have_attribute("href", re.compile(uid))
    assert row.evaluate("(one) => one.isSame")
    expect(row.get_by_role("checkbox")).to_be_checked()
    expect(link).to_be_focused()


def test_a_live_list_shows_the_end_of_the_session(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?status=completed&live=1")
    expect(page.get_by_text("● Live")).to_be_visible()
    page.context.clear_cookies()
    expect(page.locator("#connection")).to_contain_text("Your session has ended.")
    expect(page.get_by_text("○ Paused")).to_be_visible()
    expect(page.get_by_text("● Live")).to_have_count(0)
    page.get_by_role("link", name="Sign in again").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.locator("input[name=next]")).to_have_value("/responses?status=completed&live=1")


def test_a_live_list_shows_a_lost_connection_and_reconnects(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses?live=1")
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_have_text("Connection lost. Reconnecting…")
    expect(page.get_by_text("○ Paused")).to_be_visible()
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    page.context.set_offline(False)
    expect(page.locator(f'#rows a[href$="{uid}"]')).to_be_visible()
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.get_by_text("● Live")).to_be_visible()


def test_a_live_response_shows_a_lost_connection_and_reconnects(chat_server: Server, page: Page) -> None:
    with held(chat_server):
        made = chat_server.ask(model="chat", input="endlessly", background=True).json()
        refused: list[str] = []

        def cut(route: object) -> None:
            refused.append("once")
            route.abort()  # type: ignore[attr-defined]

        page.route("**/responses/*/live*", cut)
        page.goto(f"{chat_server.url}/responses/{made['id']}")
        expect(page.locator("#running")).to_contain_text("Connection lost. Reconnecting…")
        page.unroute("**/responses/*/live*")
        expect(page.locator("#running")).to_contain_text(re.compile(r"Running · \d+ events"))
        expect(page.locator("#answered")).to_contain_text("word9")
        # Connected again, before another event comes.
        page.route("**/responses/*/live*", cut)
        page.goto(f"{chat_server.url}/responses/{made['id']}/events")
        expect(page.locator("#running")).to_contain_text("Connection lost. Reconnecting…")
        page.unroute("**/responses/*/live*")
        expect(page.locator("#running")).to_have_text("Running")
        page.goto(f"{chat_server.url}/responses/{made['id']}")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".block.notice")).to_contain_text("Response cancelled")
    assert refused


def test_delete_link_is_as_red_as_the_delete_button(chat_server: Server, page: Page, many: list[str]) -> None:
    page.goto(f"{chat_server.url}/responses/{many[0]}/delete")
    colours = [page.locator(one).evaluate("one => getComputedStyle(one).color") for one in (".menu a.bad", "button.danger")]
    assert colours[0] == colours[1]
    assert colours[0] != page.locator(".menu a", has_text="Events as JSON Lines").evaluate("one => getComputedStyle(one).color")


def test_code_in_a_block_is_as_large_as_the_block_and_a_quote_has_a_bar(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="chat", input=MARKDOWN_HEAVY).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}")
    size = "one => getComputedStyle(one).fontSize"
    block = page.locator(".markdown pre")
    assert block.evaluate(size) == block.locator("code").evaluate(size)
    bar = """() => { const one = document.createElement("blockquote"); document.querySelector(".markdown").append(one);
      return getComputedStyle(one).borderLeftWidth }"""
    assert page.evaluate(bar) == "3px"


def test_live_groups_of_deltas_have_the_excerpt_of_the_final_page(chat_server: Server, page: Page) -> None:
    with held(chat_server):
        made = chat_server.ask(model="chat", input="dreamily", background=True).json()
        page.goto(f"{chat_server.url}/responses/{made['id']}/events")
        expect(page.locator("#events tr", has_text="response.reasoning_text.delta").first).to_be_visible()
    # A run of text that is longer than what is shown of it.
    live = page.locator("#events tr", has_text="response.output_text.delta").locator(".brief")
    expect(live).to_contain_text(re.compile("…$"), timeout=LIMIT_MS)
    text = live.inner_text()
    assert text.startswith("word0 word1 ")
    assert len(text) == 141
    expect(page.locator("#events tr").last).to_contain_text("response.completed", timeout=120_000)
    expect(page.locator("#running")).to_have_count(0)
    assert live.inner_text() == text
    lines = page.locator("#events tr", has_text="response.in_progress").locator(".brief").inner_text()
    assert json.loads(lines) == {"status": "in_progress", "model": "chat"}


def test_codes_of_errors_begin_the_line_in_a_list_of_failures(chat_server: Server, page: Page) -> None:
    chat_server.ask(model="chat", input="breakage")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{chat_server.url}/responses?status=failed")
    problem = page.locator("#rows td:nth-child(5) .bad").first
    expect(problem).to_have_text(re.compile("^invalid_prompt: ."))
    assert problem.evaluate("element => element.getClientRects().length") == 1


def test_the_zone_of_the_filters_moves_no_field(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    with opened_page(
        chromium, storage_state=signed_in, timezone_id="Asia/Kolkata", viewport={"width": 1280, "height": 800}
    ) as page:
        page.route("**/filter_times*.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
        page.goto(f"{chat_server.url}/responses?tool=absent", wait_until="networkidle")
        fields = page.locator("form.filters details :is(input, select)")
        zone = page.locator("[data-filter-zone]").first
        expect(zone).to_have_text("UTC")
        before = [field.bounding_box() for field in fields.all()]
        page.unroute("**/filter_times*.js")
        page.reload(wait_until="networkidle")
        expect(zone).to_have_text("GMT+5:30")
        assert [field.bounding_box() for field in fields.all()] == before


def test_a_part_that_cannot_be_loaded_names_the_reason_and_is_loaded_again(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="chat", input="a number twice").json()["id"]
    page.goto(f"{chat_server.url}/responses")
    sheet = page.get_by_role("dialog", name="Response")
    page.route(f"**/responses/{uid}", lambda route: route.fulfill(status=503, body="away"))
    page.locator("#rows tr", has=page.locator(f'a[href$="{uid}"]')).locator("td").nth(3).click()
    expect(sheet.get_by_role("alert")).to_contain_text("This response can’t be loaded. The server can’t reach its database.")
    page.unroute(f"**/responses/{uid}")
    sheet.get_by_role("button", name="Try again").press("Enter")
    expect(sheet.get_by_role("heading", level=1)).to_contain_text("a number twice")
    expect(sheet).to_be_focused()

    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{chat_server.url}/responses/{uid}", wait_until="networkidle")
    page.route("**/events", lambda route: route.abort())
    page.get_by_role("tab", name="Events").click()
    part = page.get_by_role("tabpanel", name="Events")
    expect(part.get_by_role("alert")).to_contain_text("This part can’t be loaded. The server can’t be reached.")
    page.unroute("**/events")
    page.context.clear_cookies()
    part.get_by_role("button", name="Try again").click()
    expect(part.get_by_role("alert")).to_contain_text("You’ve been signed out.")


def test_printed_pages_have_no_menus_and_cut_no_table(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="chat", input="a number twice").json()["id"]
    page.emulate_media(media="print")
    for path, hidden in (
        (f"/responses/{uid}", (".top", ".crumb", ".actions", "nav.tabs")),
        ("/responses", (".top", ".filters", "td input")),
    ):
        page.goto(chat_server.url + path)
        for part in hidden:
            expect(page.locator(part).first).to_be_hidden()
    table = page.locator(".scroll").first
    expect(table).to_have_css("overflow-x", "visible")
    expect(table.locator("td").nth(4)).to_have_css("white-space", "normal")
