"""Every page for people before axe-core, the judge of accessibility: light and dark, wide and narrow; and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.web.axe import NARROW, WIDE, unfold, violations, violations_on_screens
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
HOSTILE = "W" * 3000 + " \u202eevil\u202c \x1b[31m <script>document.title = 'stolen'</script> " + "x " * 500
PATHS_OF_PROJECTS = ("/usage", "/storage", "/files", "/containers", "/vector-stores", "/members", "/mcp-servers", "/models")
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def chat_server(tools_server: Server) -> Server:
    """Return the server with tools."""
    return tools_server


@pytest.fixture(scope="module")
def paths(chat_server: Server) -> list[str]:
    """Return a URL of every kind of page, with content."""
    model = "chat"
    messages = [{"role": "user", "content": text} for text in (HOSTILE, "markdown")]
    first = chat_server.ask(model=model, input=messages).json()["id"]
    second = chat_server.ask(model=model, input="weatherwise", tools=[TOOL], previous_response_id=first).json()["id"]
    # A fork, so that the chain is a tree; and one that fails.
    chat_server.ask(model=model, input="twice", previous_response_id=first)
    failed = chat_server.ask(model=model, input="breakage", background=True).json()["id"]
    # Arguments that are higher than their box.
    huge = chat_server.ask(model=model, input="hugely", tools=[TOOL]).json()["id"]
    tools = [{"type": "mcp", "server_label": "files", "require_approval": "never"}]
    picture = chat_server.ask(model=model, input="pictorially", tools=tools).json()
    assert [item["type"] for item in picture["output"]] == ["mcp_list_tools", "mcp_call", "message"]
    chat_server.manage("createkey", "limited", "--requests-per-minute", "5", "--model", model)
    headers = {"Authorization": f"Bearer {chat_server.key}"}
    hook = {"name": HOSTILE[:100], "url": "https://nowhere.invalid/" + "x" * 500, "event_types": ["response.completed"]}
    webhook = plain_http.post(f"{chat_server.url}/v1/webhook_endpoints", json=hook, headers=headers, timeout=180).json()["id"]
    chat_server.ask(model=model, input="markdown", background=True)
    store = plain_http.post(f"{chat_server.url}/v1/vector_stores", json={"name": HOSTILE[:100]}, headers=headers, timeout=180)
    tabs = ("", "/events", "/events/3", "/wire", "/prompt", "/cache", "/chain", "/check", "/delete")
    return [
        "/",
        "/responses",
        "/responses?q=markdown&status=odd",
        "/responses?q=nothing",
        *(f"/responses/{second}{tab}" for tab in tabs),
        f"/responses/{first}",
        f"/responses/{failed}",
        f"/responses/{huge}",
        f"/responses/{picture['id']}",
        f"/chat/{picture['id']}",
        f"/responses/{first}/rerun",
        "/nowhere",
        f"/responses/{first}/rerun?column={second}",
        "/keys",
        "/connect",
        "/keys/1",
        "/webhooks",
        f"/webhooks/{webhook}",
        f"/webhooks/{webhook}/delete",
        f"/vector-stores/{store.json()['id']}",
        *PATHS_OF_PROJECTS,
        "/chat",
        f"/chat/{second}",
        f"/chat/{second}/options",
    ]


# Buttons, fields and links of tables below 24 pixels.
SMALL_TARGETS = """() => [...document.querySelectorAll("button, .button, summary, input, .tabs a, th a")].filter((one) => {
  const { width, height } = one.getBoundingClientRect();
  return one.checkVisibility() && !one.closest(".visually-hidden") && width && Math.min(width, height) < 23.9;
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture
def person(request: pytest.FixtureRequest, chat_server: Server, chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a page with the screen of the parameter, by default a wide light one."""
    scheme: Literal["light", "dark"]
    scheme, size = getattr(request, "param", ("light", WIDE))
    visitor = Visitor(chat_server, chromium, storage_state=signed_in, color_scheme=scheme, viewport=size)
    yield visitor.page
    visitor.close()


def test_no_page_breaks_a_rule_and_none_is_wider_than_the_screen(
    chat_server: Server, person: Page, paths: list[str], axe: str
) -> None:
    broken: dict[str, Any] = {}
    person.add_init_script(axe)
    for path in paths:
        person.goto(chat_server.url + path, wait_until="networkidle")
        walk_by_keyboard(person, path)
        if small := small_targets_on_a_tablet(person):
            broken[f"fingers on {path}"] = small
        unfold(person)
        if rule_violations := violations_on_screens(person, axe):
            broken[path] = rule_violations
        assert "stolen" not in person.title()
    assert not broken, json.dumps(broken, indent=1)


def small_targets_on_a_tablet(page: Page) -> list[str]:
    """Show the page on a tablet for a moment, and return the controls that fingers do not find."""
    touch = page.context.new_cdp_session(page)
    page.set_viewport_size({"width": 768, "height": 1024})
    touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    small: list[str] = page.evaluate(SMALL_TARGETS)
    touch.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    touch.detach()
    page.set_viewport_size(WIDE)
    return small


def test_tested_mcp_server_breaks_no_rule(chat_server: Server, person: Page, axe: str) -> None:
    person.goto(f"{chat_server.url}/mcp-servers")
    person.get_by_role("button", name="Test files").click()
    expect(person.get_by_role("region", name="files").get_by_role("status")).to_contain_text("Return a picture.")
    assert violations_on_screens(person, axe) == []


def test_shared_thread_breaks_no_rule(chat_server: Server, person: Page, paths: list[str], axe: str) -> None:
    person.goto(chat_server.url + next(path for path in paths if path.endswith("/options")))
    person.get_by_role("button", name="Make a link").click()
    person.goto(person.locator("#shared").inner_text())
    assert violations_on_screens(person, axe) == []


@pytest.mark.parametrize("path", ["/", "/sign-in"])
def test_signed_out_too(chat_server: Server, chromium: Browser, axe: str, path: str) -> None:
    page = chromium.new_page()
    page.goto(chat_server.url + path)
    assert violations(page, axe) == []
    page.close()


# The wide screen is that of the test of the rules. Other pages have the same order on a narrow screen.
OTHER_WHEN_NARROW = re.compile(r"/|/keys|/chat|/responses(/resp_\w+(/rerun)?)?")


@pytest.mark.parametrize("person", [("dark", NARROW)], ids=["telephone"], indirect=True)
def test_the_keyboard_leads_through_every_page_and_out_again(
    chat_server: Server, person: Page, paths: list[str], subtests: pytest.Subtests
) -> None:
    # One page of each kind.
    kinds = {re.sub(r"resp_\w+", "", path): path for path in filter(OTHER_WHEN_NARROW.fullmatch, paths)}
    for path in kinds.values():
        with subtests.test(path=path):
            person.goto(chat_server.url + path, wait_until="networkidle")
            walk_by_keyboard(person, path)


def walk_by_keyboard(page: Page, path: str) -> None:
    """Check that the skip link leads to the content of a fresh page, and that twelve Tabs lead on to places that are seen."""
    # The chat begins in its field, as nobody comes there for anything else.
    if page.evaluate("document.activeElement === document.body"):
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
    # No trap: whatever has the focus loses it with Tab, and it is always to be seen where that is.
    before = None
    for _ in range(12):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => { const one = document.activeElement;"
            # The field of the chat shows the focus by the frame around it.
            " const shown = [one, one.parentElement].some((part) => part && getComputedStyle(part).outlineStyle !== 'none');"
            " window.seen = (window.seen ?? 0) + 1; one.dataset.place ??= window.seen;"
            " return [one.tagName + one.dataset.place, shown || one === document.body] }"
        )
        assert here[0] != before or here[0].startswith("BODY"), (path, here)
        assert here[1], (path, here)
        before = here[0]


def test_nothing_moves_with_reduced_motion(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    visitor = Visitor(chat_server, chromium, storage_state=signed_in, reduced_motion="reduce")
    visitor.send_and_wait("greetings", "Hello there!")
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    assert visitor.page.evaluate(moving) == 0
    visitor.close()


def test_forced_colours_keep_the_dots_and_the_legend(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    uid = chat_server.ask(model="chat", input="pensively").json()["id"]
    visitor = Visitor(chat_server, chromium, storage_state=signed_in, forced_colors="active")
    visitor.page.goto(f"{chat_server.url}/responses/{uid}")
    ground = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen = visitor.page.evaluate(
        "[...[...document.querySelectorAll('i.dot')].map((one) => getComputedStyle(one)),"
        " getComputedStyle(document.querySelector('.status'), '::before')].map((one) => one.backgroundColor)"
    )
    assert len(set(seen)) == len(seen) > 2
    assert ground not in seen
    visitor.page.goto(f"{chat_server.url}/")
    legend = "[...document.querySelectorAll('.legend span')].map((one) => getComputedStyle(one, '::before').color)"
    assert len(set(visitor.page.evaluate(legend))) > 2
    weights = "[...document.querySelectorAll('.ranges a')].map((one) => [one.ariaCurrent, getComputedStyle(one).fontWeight])"
    assert dict(visitor.page.evaluate(weights)) == {None: "400", "page": "600"}
    visitor.close()
