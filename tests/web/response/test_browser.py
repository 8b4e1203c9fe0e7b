"""Pages of a response in a real browser: live list, filters, keyboard, tabs, and live events."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest
from openai_harmony import load_harmony_encoding
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.web.browser import opened_page

pytestmark = pytest.mark.browser
THINKS = "<|channel|>analysis<|message|>I think about it.<|end|><|start|>assistant<|channel|>final<|message|>"
QUICK = THINKS + "It is **sunny**. <script>document.title = 'stolen'</script><|return|>"
WITH_TOOL = "And with a tool?"
SLOWLY = "Slowly, please"
RELEASED = "released"
BEGINNING, END = "one two three", " four five six seven eight nine ten eleven twelve"
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>'
TAKEN_OVER = "UPDATE responses_app_response SET takeovers = '{1}' WHERE ended_at IS NULL"
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that answers at once, `WITH_TOOL` with a call, and `SLOWLY` with a pause until there is a file."""
    encoding, folder = load_harmony_encoding("HarmonyGptOss"), tmp_path_factory.mktemp("web")
    lines = []
    for message, *parts in ((SLOWLY, THINKS + BEGINNING, f"{END}<|return|>"), (WITH_TOOL, CALL), (None, QUICK)):
        match = encoding.encode(f"{message}<|end|>", allowed_special="all") if message else None
        chunks = [[{"tokens": [one]} for one in encoding.encode(part, allowed_special="all")] for part in parts]
        steps = [step for chunk in chunks for step in (*chunk, {"until": str(folder / RELEASED)})][:-1]
        lines.append(json.dumps({"match": match, "chunks": steps}))
    tape = folder / "tape.jsonl"
    tape.write_text("\n".join(lines) + "\n")
    server = Server(folder / "data", "--engine", f"script://{tape}?loop=1")
    yield server.ready()
    server.end()


@pytest.fixture
def page(chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a page as the operator, which must report no error until the end."""
    with opened_page(chromium, storage_state=signed_in, timezone_id="Europe/Berlin") as page:
        yield page


def test_the_list_and_the_views_of_a_response(chat_server: Server, page: Page) -> None:
    first = chat_server.ask(input="How is the weather?").json()["id"]
    second = chat_server.ask(input=WITH_TOOL, tools=[TOOL], previous_response_id=first).json()["id"]
    page.goto(f"{chat_server.url}/responses")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(2)

    # By keys alone: search, open the row that is found, and leave it.
    page.keyboard.press("/")
    page.keyboard.type("weather?")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".head h1")).to_have_text("How is the weather?")
    expect(page).to_have_url(f"{chat_server.url}/responses/{first}")
    expect(page.locator("#answered strong")).to_have_text("sunny")
    expect(page.locator("#answered")).to_contain_text("<script>document.title")
    expect(page).not_to_have_title("stolen")
    expect(page.locator("#answered").get_by_text("I think about it.")).to_be_hidden()
    page.get_by_text("Thought for").click()
    expect(page.locator("#answered").get_by_text("I think about it.")).to_be_visible()

    tabs = page.get_by_role("navigation", name="Views of this response")
    expect(tabs.get_by_role("link")).to_have_text(["Conversation", "Chain", "Validation"])
    tabs.get_by_role("link", name="Chain").click()
    page.locator(".chain li").filter(has_text=second[-6:]).get_by_role("link").first.click()
    expect(page.locator("#answered")).to_contain_text("get_weather")
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("link", name="Open as a page").click()
    expect(page.locator("#events tr").last).to_contain_text("response.completed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h2").first).to_contain_text("Event 0 · response.created")
    tabs.get_by_role("link", name="Request").click()
    expect(page.locator(".wire")).to_contain_text("event: response.created")
    tabs.get_by_role("link", name="Prompt").click()
    expect(page.locator(".prompt mark").first).to_have_text("<|start|>")
    tabs.get_by_role("link", name="Validation").click()
    expect(page.locator(".verdict")).to_contain_text("events valid")
    menu = page.locator("summary[aria-label='More actions']")
    menu.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{chat_server.url}/responses?q=weather%3F")
    page.goto(f"{chat_server.url}/responses")
    page.locator(".histogram a").first.click()
    expect(page.locator("#rows tbody tr").first).to_be_visible()


def test_a_response_grows_on_its_pages_and_in_the_list_while_it_runs(chat_server: Server, page: Page) -> None:
    page.goto(f"{chat_server.url}/responses?live=1")
    creating = threading.Thread(target=lambda: chat_server.ask(input=SLOWLY))
    creating.start()
    row = page.locator("#rows tbody tr", has_text=SLOWLY)
    expect(row).to_contain_text("In progress")
    row.locator("a.open").click()
    answered = page.locator("#answered")
    expect(answered).to_contain_text(BEGINNING)
    # Whoever comes late sees all of it.
    page.reload()
    expect(answered).to_contain_text(BEGINNING)
    expect(page.locator("#running")).to_contain_text(" events")
    for path in ("", "/events"):
        _check_takeover_is_shown(chat_server, page.context.new_page(), page.url + path)
    (chat_server.folder.parent / RELEASED).touch()
    # When it has ended, the page shows it with its figures, rendered.
    expect(answered.locator(".markdown")).to_have_text(BEGINNING + END)
    expect(page.locator(".status").first).to_have_text("Completed")
    creating.join()


def _check_takeover_is_shown(server: Server, page: Page, url: str) -> None:
    """Let another process take the running response over while its page is open and hears no event."""
    notices = page.locator("#takeovers")
    page.clock.install()
    page.goto(url)
    for statement, text in ((TAKEN_OVER, re.compile("another process continued")), (TAKEN_OVER.replace("{1}", "{}"), "")):
        server.sql(statement)
        page.clock.fast_forward(60_000)
        expect(notices).to_have_text(text)
    page.close()


def test_a_key_is_made_with_limits_used_changed_and_revoked(chat_server: Server, page: Page) -> None:
    page.goto(f"{chat_server.url}/responses")
    page.get_by_role("link", name="Keys", exact=True).click()
    page.get_by_label("Name", exact=True).fill("laptop")
    page.locator("summary", has_text="Limits").click()
    page.get_by_label("Requests per minute").fill("1")
    page.get_by_label("Expires at (your time)").fill("2036-11-28T12:30")
    page.get_by_role("button", name="Create key").click()
    secret = page.locator("#secret").inner_text()
    page.reload()
    expect(page.locator("#secret")).to_have_count(0)
    expect(page.locator("tbody tr", has_text="laptop")).to_have_count(1)
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"model": "tape", "input": "Hi"}
    answers = [plain_http.post(f"{chat_server.url}/v1/responses", json=body, headers=headers, timeout=180) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert int(answers[1].headers["Retry-After"]) > 0
    page.get_by_role("link", name="Keys", exact=True).click()
    expect(page.locator("#secret")).to_have_count(0)
    line = page.locator("tbody tr", has_text="laptop")
    expect(line).to_contain_text("1 per minute")
    expect(line).not_to_contain_text("Never")
    # Local times, of which the server knows nothing.
    expect(line).to_contain_text("expires 2036-11-28 12:30")
    expect(line.locator("time[datetime='2036-11-28T11:30:00Z']")).to_have_count(1)
    line.get_by_role("link", name="laptop", exact=True).click()
    expires = page.get_by_label("Expires at (your time)")
    expect(expires).to_have_value("2036-11-28T12:30")
    expires.fill("")
    page.get_by_label("Requests per minute").fill("100000000")
    # The browser would not send it; the server says what it takes all the same.
    page.locator("form.keyform").evaluate("form => (form.noValidate = true)")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("less than or equal to 100000")
    page.get_by_label("Requests per minute").fill("")
    page.get_by_label("Name", exact=True).fill("desk")
    page.get_by_role("button", name="Save").click()
    line = page.locator("tbody tr", has_text="desk")
    expect(line).to_contain_text("None")
    line.get_by_role("link", name="Revoke desk").click()
    page.get_by_role("link", name="Cancel").click()
    expect(line).not_to_contain_text("Revoked")
    line.get_by_role("link", name="Revoke desk").click()
    page.get_by_role("button", name="Revoke key").click()
    expect(line).to_contain_text("Revoked 20")


def test_no_page_is_wider_than_a_telephone_and_all_work_without_scripts(
    chat_server: Server, chromium: Browser, signed_in: StorageState, subtests: pytest.Subtests
) -> None:
    uid = chat_server.ask(input="W" * 3000 + "\u202e" + "x " * 2000).json()["id"]
    context = chromium.new_context(
        storage_state=signed_in, java_script_enabled=False, viewport={"width": 360, "height": 740}, color_scheme="dark"
    )
    narrow = context.new_page()
    for path in ("", *(f"/{uid}{tab}" for tab in ("", "/events", "/wire", "/chain", "/delete"))):
        with subtests.test(path=path):
            narrow.goto(f"{chat_server.url}/responses{path}")
            expect(narrow.get_by_role("button", name="Sign out")).to_be_visible()
            # Without scripts the page cannot be asked for its width; what stands in it can.
            boxes = [narrow.locator(one).first.bounding_box() for one in ("main", "header")]
            assert all(box is not None and box["x"] + box["width"] <= 360 for box in boxes), path
    # What does nothing without scripts is not there, and a sentence says so.
    narrow.goto(f"{chat_server.url}/responses/{uid}/rerun")
    expect(narrow.locator("main")).to_contain_text("Running needs JavaScript.", use_inner_text=True)
    expect(narrow.get_by_role("button", name="Run", exact=True)).to_be_hidden()
    for path in ("/files", "/vector-stores"):
        narrow.goto(chat_server.url + path)
        expect(narrow.locator("main")).to_contain_text("Uploads and new stores need JavaScript", use_inner_text=True)
    narrow.goto(f"{chat_server.url}/models")
    family = narrow.locator("td[data-name=Family]").first
    box, summary = family.bounding_box(), family.locator("summary").bounding_box()
    assert box
    assert summary
    # Beside its name.
    assert summary["x"] > box["x"] + 20
    assert summary["y"] - box["y"] < summary["height"] / 2
    context.close()


def test_response_begins_with_its_question_and_its_text_is_near_the_top_of_a_phone(chat_server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{chat_server.url}/responses?q=How+is+the+weather")
    page.locator("#rows tbody a.open").last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How is the weather?")
    expect(page).to_have_title("Conversation · How is the weather? · Verbatim")
    page.wait_for_function("() => document.querySelector('.turn').getBoundingClientRect().y < 400")
    # Everything else is one step away.
    expect(page.get_by_role("link", name="Events as JSON Lines")).to_be_hidden()
    page.get_by_label("More actions").click()
    expect(page.get_by_role("link", name="Events as JSON Lines")).to_be_visible()
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_role("link", name="Events as JSON Lines")).to_be_hidden()
    page.get_by_role("button", name="Properties").click()
    expect(page.locator("#uid")).to_have_text(page.url.rpartition("/")[2])


def test_head_has_one_main_button_and_a_menu_that_opens_without_scripts(
    chat_server: Server, chromium: Browser, signed_in: StorageState
) -> None:
    uid = chat_server.ask(input="One button?").json()["id"]
    context = chromium.new_context(storage_state=signed_in, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{chat_server.url}/responses/{uid}")
    actions = page.locator(".head .actions")
    expect(actions.locator(".button.main")).to_have_text("Edit and rerun")
    expect(page.get_by_role("link", name="Continue in chat")).to_be_hidden()
    page.get_by_label("More actions").click()
    for name in ("Continue in chat", "Response as JSON", "Events as JSON Lines", "Events as SSE", "Delete"):
        expect(actions.get_by_role("link", name=name, exact=True)).to_be_visible()
    context.close()


def test_the_cache_tab_names_the_first_difference(chat_server: Server, page: Page) -> None:
    instructions = "Answer in one sentence. " * 4
    first = chat_server.ask(input="How is the weather?", instructions=instructions).json()["id"]
    second = chat_server.ask(input="And now?", instructions=f"12:01 {instructions}", previous_response_id=first).json()["id"]
    page.goto(f"{chat_server.url}/responses/{second}?part=cache")
    expect(page.get_by_role("tab", name="Cache")).to_have_attribute("aria-selected", "true")
    page.get_by_role("link", name="Open as a page").click()
    expect(page.get_by_text("tokens computed again: instructions changed.")).to_be_visible()
    marks = page.locator(".prompt mark")
    expect(marks).to_have_count(2)
    expect(marks.nth(0)).to_contain_text("Answer in one")
    expect(marks.nth(1)).to_contain_text("12:01")
    page.get_by_label("Compare with").fill(second)
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("No tokens lost.")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_tabs_have_one_place_on_all_views_and_the_menu_leads_to_curl(chat_server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    uid = chat_server.ask(input="Where are the tabs?").json()["id"]
    places = set()
    for view in ("", "/events", "/events/3", "/wire", "/prompt", "/chain", "/check"):
        page.goto(f"{chat_server.url}/responses/{uid}{view}")
        box = page.get_by_role("navigation", name="Views of this response").bounding_box()
        assert box
        places.add((box["x"], box["y"]))
    assert len(places) == 1
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Request as curl").click()
    expect(page.locator("#curl")).to_be_visible()


def test_properties_stand_beside_the_turns_on_a_wide_screen(chat_server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    uid = chat_server.ask(
        input="In few words?", temperature=0.7, max_output_tokens=16, tools=[TOOL], tool_choice="none"
    ).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}")
    properties, turns = page.locator(".properties"), page.locator("#response > .view")
    for shown in (
        "Temperature",
        "0.7",
        "Max output tokens",
        "16",
        "Tools",
        "get_weather",
        "Finish reason",
        "max_output_tokens",
    ):
        expect(properties).to_contain_text(shown)
    top_p = properties.get_by_text("Top P", exact=True)
    expect(top_p).to_be_hidden()
    properties.get_by_text("Parameters not set").click()
    expect(top_p).to_be_visible()
    right, left = properties.bounding_box(), turns.bounding_box()
    assert right
    assert left
    assert (right["x"] >= left["x"] + left["width"], right["y"] < left["y"] + 80) == (True, True)
    page.set_viewport_size({"width": 800, "height": 900})
    page.reload()
    expect(properties.locator("dl").first).to_be_hidden()


def test_a_long_result_opens_in_place_and_as_text_without_scripts(
    chat_server: Server, page: Page, chromium: Browser, signed_in: StorageState
) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": "{}"}
    result = json.dumps([{"hour": hour} for hour in range(1_000)])
    output = {"type": "function_call_output", "call_id": "c", "output": result}
    uid = chat_server.ask(input=[{"role": "user", "content": "And now?"}, call, output], tools=[TOOL]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}")
    link = page.get_by_role("link", name="Show all")
    link.click()
    box = page.get_by_label("Result")
    expect(box).to_contain_text('"hour": 999')
    expect(box).to_be_focused()
    expect(box.locator(".hljs-number").first).to_be_visible()
    expect(link).to_have_count(0)
    with opened_page(chromium, storage_state=signed_in, java_script_enabled=False) as plain:
        plain.goto(page.url)
        plain.get_by_role("link", name="Show all").click()
        expect(plain.locator("body")).to_contain_text('{\n    "hour": 999\n  }', use_inner_text=True)
