"""Accessibility of the chat page: keyboard, phone, dark mode, screen reader, no JavaScript."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Browser, StorageState, ViewportSize, expect

from tests.support.server.serve_command import Server
from tests.support.web.chat_visitor import LOW_CONTRAST, UNNAMED_CONTROLS, Visitor, held

pytestmark = pytest.mark.browser


def test_draft_outlives_a_reload_and_shift_enter_begins_a_line(visitor: Visitor) -> None:
    visitor.field.press_sequentially("one")
    visitor.field.press("Shift+Enter")
    visitor.field.press_sequentially("two")
    visitor.page.reload()
    expect(visitor.field).to_have_value("one\ntwo")
    expect(visitor.answers).to_have_count(0)


def test_on_a_phone_nothing_is_wider_than_the_screen(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    size: ViewportSize = {"width": 360, "height": 640}
    visitor = Visitor(chat_server, chromium, storage_state=signed_in, viewport=size, has_touch=True, color_scheme="dark")
    visitor.send_and_wait("markdown", "A title")
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
    assert visitor.errors.seen == []


def test_without_javascript_a_notice_is_shown(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    visitor = Visitor(chat_server, chromium, storage_state=signed_in, java_script_enabled=False)
    missing = visitor.page.locator("noscript p")
    expect(missing).to_be_visible()
    expect(missing.locator("a")).to_have_attribute("href", "/responses")
    visitor.close()


def test_all_of_it_can_be_read_and_named(visitor: Visitor) -> None:
    visitor.choose("weather", run_automatically=False)
    visitor.send_and_wait("greetings", "Hello there!")
    visitor.send_and_wait("markdown", "A title")
    visitor.send("breakage")
    expect(visitor.last.get_by_role("alert")).to_be_visible()
    visitor.last.get_by_role("button", name="Try again").click()
    expect(visitor.last).to_contain_text("2 of 2")
    visitor.send("handmade")
    expect(visitor.page.get_by_label("Result of get_weather")).to_be_visible()
    visitor.page.locator("details.settings > summary").click()
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        visitor.page.emulate_media(color_scheme=scheme)
        assert visitor.page.evaluate(LOW_CONTRAST) == [], scheme
    assert visitor.page.evaluate(UNNAMED_CONTROLS) == []


def test_controls_of_turns_have_names_of_their_own(visitor: Visitor) -> None:
    visitor.send_and_wait("greetings", "Hello there!")
    visitor.send_and_wait("more greetings", "Hello again!")
    controls = visitor.page.locator(".turns :is(button, a)")
    name = "(all) => all.map((one) => one.ariaLabel ?? one.textContent)"
    for _ in range(2):
        expect(visitor.last.get_by_role("button", name="Regenerate answer 2", exact=True)).to_be_visible()
        names: list[str] = controls.evaluate_all(name)
        assert len(set(names)) == len(names), names
        assert {"Edit message 1", "Copy answer 1", "Events answer 2", "Properties of answer 2"} <= set(names)
        visitor.page.reload()
        expect(visitor.answers).to_have_count(2)


def test_the_end_of_an_answer_is_announced_and_a_dialog_takes_escape_first(visitor: Visitor) -> None:
    with held(visitor.server):
        visitor.send("slowly")
        expect(visitor.last).to_contain_text("word1")
        visitor.page.get_by_role("link", name="Options of slowly").first.click()
        dialog = visitor.page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        visitor.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        stop = visitor.page.get_by_role("button", name="Stop")
        expect(stop).to_be_visible()
        expect(visitor.last).to_contain_text("word5")
        visitor.page.keyboard.press("Escape")
        region = visitor.page.locator("#chat > [role=status]")
        expect(region).to_contain_text("Stopped. word0 word1")
        expect(stop).to_be_hidden()
