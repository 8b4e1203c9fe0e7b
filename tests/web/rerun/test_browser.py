"""Page that edits and reruns a request, in a real browser: recorded results, edits, variants, differences and the address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.web.chat_visitor import HELD, held, matching_tape
from tests.support.web.page_case import LARGEST
from tests.support.web.rerun_page import answer, call, column, run

pytestmark = pytest.mark.browser
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def search(query: str) -> str:
    return f"<|channel|>analysis to=browser.search code<|message|>{json.dumps({'query': query})}<|call|>"


SAY_THAT = {"role": "user", "content": "Say that"}
SLOW = f"# A heading\n\n{HELD}"
# Generated texts by message; the texts of a message are used in turn.
TEXTS = {
    "Say it": (answer("The cat sat on the mat."), answer("The dog sat on the mat.")),
    "Say that": (answer("Another text."),),
    "Say more": (answer("More."), answer("More again.")),
    "Weather alone": (*(call("get_weather", city="Paris"), call("get_weather", city="Paris"), answer("Wet in Paris.")),),
    "Weather of Messages": (*(call("get_weather", city="Oslo"), call("get_weather", city="Rome")),),
    "Say it slowly": (f"<|channel|>analysis<|message|>Slow.<|end|><|start|>assistant{answer(SLOW)}",),
    "Weather here": (
        *(call("get_weather", city="Paris"), answer("Sunny in Paris.")),
        *(call("get_weather", city="Paris"), answer("Fine in Paris.")),
        *(call("get_weather", city="Oslo"), answer("Cold in Oslo.")),
    ),
    "Delete the file": (
        *(call("files__delete", path="a.txt"), answer("It is gone.")),
        *(call("files__delete", path="a.txt"), answer("It is gone again.")),
        *(call("files__delete", path="b.txt"), answer("Never said.")),
    ),
    "Approve it": (
        *(call("files__delete", path="a.txt"), answer("Approved once.")),
        *(call("files__delete", path="a.txt"), answer("Approved twice.")),
        *(call("files__delete", path="a.txt"), answer("Not approved.")),
    ),
    "Tides now": (
        *(search("tides"), answer("Tides.")),
        *(search("tides"), answer("Tides again.")),
        *(search("other"), answer("Never said.")),
    ),
}


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory, mcp_url: str) -> Iterator[Server]:
    """Start a server with the recordings and the MCP server of the tests."""
    folder = tmp_path_factory.mktemp("rerun")
    engine = matching_tape(folder, TEXTS, {"Say it slowly": 0.05})
    with Server(
        folder / "data",
        *("--engine", engine, "--demo-tools"),
        RESPONSES_MCP_SERVERS=json.dumps({"files": {"url": mcp_url}}),
        RESPONSES_STORE_API_FORMATS="1",
    ) as server:
        yield server.ready()


def fetch(server: Server, path: str, body: dict[str, Any] | None = None) -> Any:
    """Return the JSON of the API, of a POST with a body."""
    headers = {"Authorization": f"Bearer {server.key}"}
    return plain_http.request(
        "GET" if body is None else "POST", server.url + path, json=body, headers=headers, timeout=180
    ).json()


def test_edited_request_runs_beside_the_original_and_a_reload_shows_the_same(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say it", instructions="Be short.", temperature=0.5).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}")
    page.get_by_role("link", name="Edit and rerun").click()
    expect(page.get_by_label("Instructions")).to_have_value("Be short.")
    expect(page.get_by_label("Temperature")).to_have_value("0.5")
    expect(column(page, "Original")).to_contain_text("The cat sat on the mat.")
    page.get_by_label("Instructions").fill("Be long.")
    run(page)
    first = column(page, "Run 1")
    expect(first.locator(".differences")).to_be_visible()
    expect(first.locator(".differences")).to_contain_text("Be short.Be long.")
    expect(first.locator(".diff").first).to_contain_text("The catdog sat on the mat.")
    expect(first.locator(".figures")).to_contain_text("Valid")
    # Said to screen readers, as the focus stays on the button.
    expect(first.get_by_role("status")).to_have_text("Run 1: Completed")
    expect(first.get_by_text("Items: the same")).to_be_visible()
    expect(first.get_by_text("Request (1)")).to_be_visible()
    page.reload()
    expect(first.locator(".diff").first).to_contain_text("The catdog sat on the mat.")
    expect(page.get_by_label("Instructions")).to_have_value("Be long.")
    # Both pages and the chain show the link.
    first.locator(".summary a").click()
    page.locator(".properties").get_by_role("link", name=f"{uid[:8]}…{uid[-6:]}").click()
    expect(page).to_have_url(f"{chat_server.url}/responses/{uid}")
    expect(page.locator(".properties")).to_contain_text("Reruns")


def test_change_at_the_end_of_a_long_message_is_seen(chat_server: Server, page: Page) -> None:
    note = "A long note. " * 100
    uid = chat_server.ask(model="tools", input=[{"role": "user", "content": f"{note}red"}, SAY_THAT]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    item = page.locator("details.item").first
    item.locator("summary").click()
    item.get_by_role("textbox").fill(f"{note}blue")
    run(page)
    cell = column(page, "Run 1").locator(".differences").get_by_role("row", name="input")
    expect(cell.locator("del")).to_contain_text("A long note. red")
    expect(cell.locator("ins")).to_contain_text("A long note. blue")


def test_edits_that_were_not_run_come_back_until_they_run_or_are_discarded(chat_server: Server, page: Page) -> None:
    tool = {"type": "mcp", "server_label": "x", "server_url": "https://example.com/mcp", "headers": {"K": "secret"}}
    messages = [{"role": "user", "content": "A first message"}, {"role": "user", "content": "Say that"}]
    uid = chat_server.ask(model="tools", input=messages, instructions="Be short.").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    item, discard = page.locator("details.item"), page.get_by_role("button", name="Discard edits")
    stored = "sessionStorage[location.pathname] ?? ''"
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    for ends_by_run in (False, True):
        expect(discard).to_have_count(0)
        page.get_by_label("Instructions").fill("Be long.")
        page.locator("textarea[name=tools]").fill(json.dumps([tool]))
        column(page, "Run 1").get_by_text("Changed fields", exact=True).click()
        column(page, "Run 1").get_by_label("Changed fields as JSON").fill('{"temperature": 0.25}')
        item.first.locator("summary").click()
        item.first.get_by_role("button", name="Remove").click()
        item.get_by_role("textbox").fill("Say that now")
        page.wait_for_function(f"() => ({stored}).includes('Say that now')")
        assert "secret" not in page.evaluate(stored)
        page.reload()
        expect(discard).to_be_visible()
        expect(page.get_by_label("Instructions")).to_have_value("Be long.")
        expect(page.locator("textarea[name=tools]")).to_have_value("")
        expect(column(page, "Run 1").get_by_label("Changed fields as JSON")).to_have_value('{"temperature": 0.25}')
        expect(item).to_have_count(1)
        expect(item.get_by_role("textbox")).to_have_value("Say that now")
        if ends_by_run:
            item.get_by_role("textbox").fill("Say that")
            run(page)
            expect(column(page, "Run 1").locator(".differences")).to_be_visible()
            page.reload()
        else:
            discard.press("Enter")
        expect(item).to_have_count(1 if ends_by_run else 2)
        expect(page.get_by_label("Instructions")).to_have_value("Be long." if ends_by_run else "Be short.")
        expect(discard).to_have_count(0)
        assert page.evaluate(stored) == ""


def test_an_error_says_whether_the_run_has_started(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say more").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    page.route("**/rerun/column?*", lambda route: route.abort())
    run(page)
    first = column(page, "Run 1")
    expect(first.get_by_role("alert")).to_contain_text("The run could not be shown")
    page.unroute("**/rerun/column?*")
    first.get_by_role("button", name="Try again").click()
    expect(first.locator(".differences")).to_be_visible()
    expect(first).to_contain_text("More again.")
    page.route("**/v1/responses", lambda route: route.fulfill(status=400, json={"error": {"message": "Refused."}}))
    run(page)
    expect(first.get_by_role("alert")).to_contain_text("The run did not start")
    expect(first.get_by_role("status")).to_be_empty()
    # The same request would be refused again.
    expect(first.get_by_role("button", name="Try again")).to_have_count(0)


def refuse(page: Page, times: int, **headers: str) -> list[str]:
    """Refuse the next runs with 503 and `headers`. Return the list to which the idempotency key of each request is added."""
    keys: list[str] = []

    def respond(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        error = {"message": "The engine does not answer.", "code": "server_error"}
        if len(keys) > times:
            return route.fallback()
        return route.fulfill(status=503, json={"error": error}, headers=headers)

    page.route(re.compile(r"/v1/responses$"), respond)
    return keys


def test_a_run_that_is_refused_for_now_is_sent_again(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    keys = refuse(page, 2, **{"Retry-After": "1"})
    run(page)
    first = column(page, "Run 1")
    expect(first.get_by_role("alert")).to_contain_text("The engine does not answer.")
    expect(first).to_contain_text("The run is sent again in 1 s.")
    expect(first.get_by_role("status")).to_have_text("Run 1: Waiting")
    expect(first.locator(".summary")).to_have_text("Waiting")
    expect(first.locator(".differences")).to_be_visible()
    expect(first.get_by_role("alert")).to_have_count(0)
    assert (len(keys), len(set(keys))) == (3, 1)


def test_a_run_that_is_refused_starts_by_a_button(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    keys = refuse(page, 2, **{"Retry-After": "100"})
    run(page)
    first = column(page, "Run 1")
    first.get_by_role("button", name="Send now").click()
    expect(first).to_contain_text("The run is sent again in 100 s.")
    first.get_by_role("button", name="Stop").click()
    expect(first.get_by_role("alert")).to_contain_text("The run did not start")
    first.get_by_role("button", name="Try again").press("Enter")
    expect(first.locator(".differences")).to_be_visible()
    assert (len(keys), len(set(keys))) == (3, 1)


def test_answers_stay_when_the_server_is_away(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Weather alone", tools=[WEATHER]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    page.get_by_label("Live").check()
    run(page)
    first = column(page, "Run 1")
    answer_field = first.get_by_placeholder("Tool result")
    answer_field.fill("It is raining")
    page.route(re.compile(r"/v1/responses$"), lambda route: route.abort())
    first.get_by_role("button", name="Continue", exact=True).click()
    expect(first.get_by_role("alert")).to_contain_text("Can’t reach the server.")
    expect(answer_field).to_have_value("It is raining")
    page.unroute(re.compile(r"/v1/responses$"))
    first.get_by_role("button", name="Try again").click()
    expect(first).to_contain_text("Wet in Paris.")
    expect(first.get_by_role("alert")).to_have_count(0)


def test_a_run_starts_once_the_server_is_back(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun", wait_until="networkidle")
    # Not even the modules of a run can be fetched.
    page.context.set_offline(True)
    run(page)
    first = column(page, "Run 1")
    expect(first.get_by_role("alert")).to_contain_text("Can’t reach the server.")
    page.context.set_offline(False)
    first.get_by_role("button", name="Try again").click()
    expect(first.locator(".differences")).to_be_visible()


def test_schema_of_messages_that_strict_mode_refuses_runs_again(chat_server: Server, page: Page) -> None:
    optional = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
    tool = {"name": "get_weather", "strict": True, "input_schema": optional}
    message = {"role": "user", "content": "Weather of Messages"}
    fetch(chat_server, "/v1/messages", {"model": "tools", "max_tokens": 99, "messages": [message], "tools": [tool]})
    uid = fetch(chat_server, "/v1/responses?limit=1")["data"][0]["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    run(page)
    expect(column(page, "Run 1")).to_contain_text("Rome")


def test_completion_with_fewer_tokens_than_responses_may_have_runs_again(chat_server: Server, page: Page) -> None:
    body = {"model": "tools", "max_tokens": 2, "messages": [{"role": "user", "content": "Say more"}], "store": True}
    uid = fetch(chat_server, "/v1/chat/completions", body)["id"].replace("chatcmpl-", "resp_")
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    run(page)
    expect(column(page, "Run 1").locator(".summary")).to_contain_text("Incomplete")


def test_running_items_are_drawn_as_on_the_other_pages(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say it slowly").json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    with held(chat_server):
        run(page)
        result = column(page, "Run 1")
        live = result.locator(".items.live")
        # Markdown while the text streams, and the fragment of the ended reasoning beside it.
        expect(live.locator(".message[data-item]").get_by_role("heading")).to_have_text("A heading")
        expect(live.locator("details.reasoning[data-item] .label")).to_contain_text("Thought for")
        result.get_by_role("button", name="Stop").focus()
        expect(result.locator(".summary")).to_have_text("In progress")
        before = live.bounding_box()
    expect(result.locator(".differences")).to_be_visible()
    expect(live).to_have_count(0)
    # That of the button, which is gone.
    expect(result).to_be_focused()
    after = result.locator(".items").bounding_box()
    # The text stays in its place when the result comes.
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 2
    expect(result.locator(".message[data-item]").get_by_role("heading")).to_have_text("A heading")


def test_a_column_names_a_lost_connection_until_it_is_back(chat_server: Server, page: Page) -> None:
    with held(chat_server):
        uid = chat_server.ask(model="tools", input="Say it slowly", background=True).json()["id"]
        page.route("**/v1/responses/*?stream=true*", lambda route: route.abort())
        page.goto(f"{chat_server.url}/responses/{uid}/rerun?column={uid}")
        lost = page.get_by_text("Connection lost. Reconnecting…")
        expect(lost).to_be_visible()
        expect(lost.locator("xpath=ancestor::section").get_by_role("status")).to_contain_text("Connection lost")
        page.unroute("**/v1/responses/*?stream=true*")
        expect(lost).to_have_count(0)
        expect(page.locator(".items.live").get_by_role("heading")).to_have_text("A heading")


def test_mistake_in_json_is_named_with_its_place(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that", tools=[WEATHER]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    tools = page.locator("textarea[name=tools]")
    tools.fill('[\n  {"type": }\n]')
    run(page)
    expect(page.get_by_role("alert")).to_contain_text("Line 2, column 12")
    expect(tools).to_be_focused()
    tools.fill('[{"type": "nothing"}]')
    run(page)
    # The server names the field.
    expect(page.get_by_role("alert").first).to_contain_text("tools[0]")


def test_recorded_results_answer_function_calls_and_another_call_stops(chat_server: Server, page: Page) -> None:
    first = chat_server.ask(model="tools", input="Weather here", tools=[WEATHER]).json()
    (function_call,) = [item for item in first["output"] if item["type"] == "function_call"]
    output = {"type": "function_call_output", "call_id": function_call["call_id"], "output": "sunny"}
    chat_server.ask(model="tools", input=[output], tools=[WEATHER], previous_response_id=first["id"])
    page.goto(f"{chat_server.url}/responses/{first['id']}/rerun")
    expect(column(page, "Original")).to_contain_text("Sunny in Paris.")
    run(page)
    expect(column(page, "Run 1")).to_contain_text("Fine in Paris.")
    expect(column(page, "Run 1").get_by_text("Arguments: the same")).to_be_visible()
    page.get_by_role("button", name="Add column").click()
    page.goto(page.url)
    run(page)
    # One of the columns gets the call with other arguments.
    stopped = page.locator(".stopped")
    expect(stopped).to_have_count(1)
    expect(stopped).to_contain_text('get_weather({"city":"Oslo"})')
    expect(stopped).to_contain_text('get_weather({"city":"Paris"})')


def test_recorded_results_stand_in_for_a_server_tool(chat_server: Server, page: Page) -> None:
    tool = {"type": "mcp", "server_label": "files", "require_approval": "never"}
    original = chat_server.ask(model="tools", input="Delete the file", tools=[tool]).json()
    page.goto(f"{chat_server.url}/responses/{original['id']}/rerun")
    run(page)
    result = column(page, "Run 1")
    expect(result).to_contain_text("It is gone again.")
    expect(result).to_contain_text("deleted a.txt")
    (shown,) = re.findall(r"Prompt tokens: the same ([\d,]+)", result.inner_text())
    prompt = page.context.new_page()
    prompt.goto(f"{chat_server.url}/responses/{original['id']}/prompt")
    # Not the prompt of the request before the tools of the server were listed, which no model got.
    expect(prompt.get_by_text(f"Prompt of round 1 of 2: {shown} tokens")).to_be_visible()
    prompt.close()
    run(page)
    expect(result.locator(".notice.error")).to_contain_text('files: delete({"path":"b.txt"})')
    expect(result.locator(".notice.error")).to_contain_text('files: delete({"path":"a.txt"})')
    expect(result).not_to_contain_text("Never said.")


def test_approvals_are_answered_as_recorded_or_asked_for(chat_server: Server, page: Page) -> None:
    tool = {"type": "mcp", "server_label": "files", "require_approval": "always"}
    first = chat_server.ask(model="tools", input="Approve it", tools=[tool]).json()
    (request,) = [item for item in first["output"] if item["type"] == "mcp_approval_request"]
    approval = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    chat_server.ask(model="tools", input=[approval], tools=[tool], previous_response_id=first["id"])
    page.goto(f"{chat_server.url}/responses/{first['id']}/rerun")
    result = column(page, "Run 1")
    run(page)
    expect(result).to_contain_text("Approved twice.")
    expect(result.locator(".summary").last).to_contain_text("continued in resp_")
    expect(result.get_by_text("Items: the same")).to_be_visible()
    page.get_by_label("Ask me").check()
    run(page)
    result.get_by_label("Deny").check()
    result.get_by_role("button", name="Continue").press("Enter")
    expect(result).to_contain_text("Not approved.")
    expect(result).to_be_focused()
    page.reload()
    expect(page.get_by_label("Ask me")).to_be_checked()
    expect(result).to_contain_text("Not approved.")


def test_buttons_have_names_of_their_own(chat_server: Server, page: Page) -> None:
    texts = ("A first message", "A first message", "Say that")
    messages = [{"role": "user", "content": text} for text in texts]
    uid = chat_server.ask(model="tools", input=messages).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    for _ in range(2):
        page.get_by_role("button", name="Add column").click()
    column(page, "Run 2").get_by_role("button", name="Remove Run 2", exact=True).click()
    expect(column(page, "Run 3")).to_have_count(0)
    for _ in range(2):
        page.get_by_role("button", name="Add message").click()
    page.locator("details.item").evaluate_all("all => all.forEach((item) => (item.open = true))")
    names: list[str] = page.locator("#rerun button").evaluate_all(
        "(all) => all.filter((one) => !one.hidden).map((one) => one.ariaLabel ?? one.textContent.trim())"
    )
    assert len(set(names)) == len(names), names
    assert {"Remove Run 2", "Remove: User: A first message (2)", "Remove: User (2)", "Continue from here, item 1"} <= set(names)


def test_item_is_edited_as_json_and_columns_are_added_and_removed(chat_server: Server, page: Page) -> None:
    chain = chat_server.ask(model="tools", input="Say that").json()["id"]
    uid = chat_server.ask(model="tools", input="Say that", previous_response_id=chain).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    page.get_by_role("button", name="Edit as JSON").click()
    item = json.loads(page.locator("details.item textarea").input_value())
    item["role"] = "developer"
    page.locator("details.item textarea").fill(json.dumps(item))
    page.get_by_role("button", name="Add column").click()
    page.get_by_role("button", name="Add column").click()
    expect(page.get_by_role("button", name="Add column")).to_be_disabled()
    # All columns are seen without scrolling.
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator(".columns").evaluate("box => box.scrollWidth <= box.clientWidth")
    column(page, "Run 1").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Add column")).to_be_focused()
    page.get_by_role("button", name="Add message").click()
    page.locator("details.item").last.get_by_role("button", name="Remove").click()
    expect(page.locator("details.item summary").last).to_be_focused()
    expect(column(page, "Run 3")).to_have_count(0)
    column(page, "Run 2").get_by_text("Changed fields", exact=True).click()
    column(page, "Run 2").get_by_label("Changed fields as JSON").fill('{"temperature": 0.25}')
    run(page)
    for name in ("Run 1", "Run 2"):
        expect(column(page, name).locator(".differences")).to_contain_text("Prompt tokens")
    expect(column(page, "Run 2").locator(".differences")).to_contain_text("temperature")
    run_uid = column(page, "Run 2").locator(".result").get_attribute("data-run")
    stored = fetch(chat_server, f"/v1/responses/{run_uid}")
    assert stored["previous_response_id"] == chain
    assert stored["temperature"] == 0.25
    page.goto(f"{chat_server.url}/responses/{uid}/chain")
    expect(page.locator(".chain").get_by_text("Rerun")).to_have_count(2)


def test_sixty_items_weigh_little_and_are_sent_as_they_are_shown(chat_server: Server, page: Page) -> None:
    note = json.dumps({"sky": "clear", "note": "x" * 200})
    calls = [
        {"type": kind, "call_id": f"call_{number}", **fields}
        for number in range(30)
        for kind, fields in (
            ("function_call", {"name": "get_weather", "arguments": json.dumps({"city": f"City {number}"})}),
            ("function_call_output", {"output": note}),
        )
    ]
    conversation = [{"role": "user", "content": "\nA line\n"}, *calls, {"role": "user", "content": "Say that"}]
    uid = chat_server.ask(model="tools", input=conversation).json()["id"]
    document = page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    assert document
    assert len(document.body()) < LARGEST
    items = page.locator("details.item")
    for place in (0, 2):
        items.nth(place).locator("summary").click()
    items.first.get_by_role("button", name="Edit as JSON").click()
    assert json.loads(items.first.locator("textarea").input_value())["content"][0]["text"] == "\nA line\n"
    edited = items.nth(2).locator("textarea")
    edited.fill(edited.input_value().replace("clear", "grey"))
    run(page)
    run_uid = column(page, "Run 1").locator(".result").get_attribute("data-run")
    before, after = (
        fetch(chat_server, f"/v1/responses/{one}/input_items?limit=100&order=asc")["data"] for one in (uid, run_uid)
    )
    assert after[2].pop("id") != before[2].pop("id")
    assert after.pop(2) == {**before[2], "output": before.pop(2)["output"].replace("clear", "grey")}
    assert after == before


def test_the_latest_items_have_editors_and_the_others_are_sent_as_they_are(chat_server: Server, page: Page) -> None:
    notes = [{"role": "user", "content": f"Note {number}"} for number in range(249)]
    uid = chat_server.ask(model="tools", input=[*notes, {"role": "user", "content": "Say that"}]).json()["id"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    items = page.locator("details.item")
    expect(items).to_have_count(100)
    expect(page.get_by_text("150 earlier items, sent as they are.")).to_be_visible()
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_text("50 earlier items, sent as they are.")).to_be_visible()
    expect(items.first.locator("summary")).to_be_focused()
    # No edit.
    page.reload()
    expect(items).to_have_count(100)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    page.get_by_role("button", name="Show more").click()
    expect(items.first).to_contain_text("User: Note 50")
    items.first.locator("summary").press("Enter")
    items.first.get_by_role("textbox").fill("Another note")
    page.reload()
    expect(items.first.get_by_role("textbox")).to_have_value("Another note")
    run(page)
    expect(column(page, "Run 1").locator(".differences")).to_be_visible()
    run_uid = column(page, "Run 1").locator(".result").get_attribute("data-run")
    before, after = (sent_texts(chat_server, one) for one in (uid, run_uid))
    assert len(before) == 250
    assert after == [*before[:50], "Another note", *before[51:]]
    # Behind an item of the part without editors.
    page.goto(f"{chat_server.url}/responses/{uid}/rerun?column={run_uid}")
    column(page, "Original").get_by_role("button", name="Continue from here").click()
    expect(page.get_by_text("151 earlier items, sent as they are.")).to_be_visible()
    expect(items).to_have_count(100)


def sent_texts(server: Server, uid: str | None) -> list[str]:
    """Return the texts of the input of a response, oldest first."""
    texts: list[str] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        after = f"&after={page['last_id']}" if texts else ""
        page = fetch(server, f"/v1/responses/{uid}/input_items?limit=100&order=asc{after}")
        texts += [one["content"][0]["text"] for one in page["data"]]
    return texts


def test_conversation_is_not_changed_by_a_rerun(chat_server: Server, page: Page) -> None:
    conversation = fetch(chat_server, "/v1/conversations", body={})["id"]
    for _ in range(2):
        uid = chat_server.ask(model="tools", input="Say that", conversation=conversation).json()["id"]
    before = fetch(chat_server, f"/v1/conversations/{conversation}/items")["data"]
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    expect(page.locator("details.item")).to_have_count(3)
    run(page)
    expect(column(page, "Run 1").get_by_text(re.compile("Prompt tokens: the same"))).to_be_visible()
    assert fetch(chat_server, f"/v1/conversations/{conversation}/items")["data"] == before


def test_web_search_gets_its_recorded_result(chat_server: Server, page: Page) -> None:
    original = chat_server.ask(model="tools", input="Tides now", tools=[{"type": "web_search"}]).json()
    assert [item["type"] for item in original["output"]] == ["web_search_call", "message"]
    page.goto(f"{chat_server.url}/responses/{original['id']}/rerun")
    run(page)
    expect(column(page, "Run 1")).to_contain_text("Tides again.")
    expect(column(page, "Run 1").get_by_text(re.compile("Prompt tokens: the same"))).to_be_visible()
    run(page)
    expect(column(page, "Run 1").locator(".notice.error")).to_contain_text('search({"query":"other"})')


def test_phone_has_tabs_and_a_column_continues_from_an_item(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that").json()["id"]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{chat_server.url}/responses/{uid}/rerun?column={uid}&column=tools")
    expect(column(page, "Response 2")).to_be_visible()
    expect(column(page, "Response 1")).to_be_hidden()
    page.locator(".panes").get_by_text("Response 1").click()
    expect(column(page, "Response 1")).to_be_visible()
    page.get_by_role("button", name="Continue from here").locator("visible=true").click()
    page.locator(".panes").get_by_text("Request").click()
    expect(page.locator("details.item")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_nothing_moves_on_a_phone_when_a_run_begins_and_ends(chat_server: Server, page: Page) -> None:
    uid = chat_server.ask(model="tools", input="Say that").json()["id"]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{chat_server.url}/responses/{uid}/rerun")
    result = column(page, "Run 1")
    stop, remove = (result.get_by_role("button", name=name) for name in ("Stop", "Remove"))
    before = remove.bounding_box()
    run(page)
    expect(result.locator(".differences")).to_be_visible()
    expect(stop).to_be_hidden()
    assert remove.bounding_box() == before
    # Stop takes the place of Remove.
    result.locator("[data-stop]").evaluate("button => (button.hidden = false)")
    expect(remove).to_be_hidden()
    place = stop.bounding_box()
    assert place
    assert before
    assert place["y"] == before["y"]


def test_unknown_field_for_other_keys_and_missing_original(chat_server: Server) -> None:
    refused = chat_server.ask(model="tools", rerun={"of": "resp_x", "tools": "recorded"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "Unknown parameter: 'rerun'."
