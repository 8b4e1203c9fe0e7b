"""Times in a browser in Berlin: local text, UTC in the title, also in rows that come later; UTC without scripts."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.support.server.serve_command import Server
from tests.support.web.browser import LIMIT_MS

pytestmark = pytest.mark.browser
BERLIN = ZoneInfo("Europe/Berlin")
SHIFT = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().reduce((sum, one) => sum + one.value, 0)))
  .observe({ type: "layout-shift", buffered: true }) || setTimeout(() => done(0), 300))"""


def opened(chromium: Browser, signed_in: StorageState, *, scripts: bool) -> Page:
    """Open a page in Berlin with the cookies of the operator."""
    context = chromium.new_context(storage_state=signed_in, timezone_id="Europe/Berlin", java_script_enabled=scripts)
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    return page


def test_times_are_local_and_utc_on_hover(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    page = opened(chromium, signed_in, scripts=True)
    for path in ("/responses", f"/responses/{uid}", f"/responses/{uid}/chain"):
        page.goto(chat_server.url + path)
        time = page.locator(f"tr:has(a[href='/responses/{uid}']) time, .summary time").first
        instant = datetime.fromisoformat(time.get_attribute("datetime") or "")
        expect(time).to_have_text(f"{instant.astimezone(BERLIN):%b {instant.astimezone(BERLIN).day}, %H:%M:%S}")
        expect(time).to_have_attribute("title", f"{instant:%Y-%m-%d %H:%M:%S} UTC")
        assert page.evaluate(SHIFT) < 0.01, path
    page.goto(f"{chat_server.url}/keys")
    expect(page.get_by_text("Times in your time zone (UTC on hover).")).to_be_visible()
    assert page.evaluate(SHIFT) < 0.002
    page.context.close()


def test_filters_take_local_times(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    page = opened(chromium, signed_in, scripts=True)
    page.goto(f"{chat_server.url}/responses?since=2026-11-20T10:00:00&until=2h")
    since, until = page.get_by_label("From (GMT+1)"), page.locator("[name=until]")
    expect(since).to_have_value("2026-11-20 11:00:00")
    expect(until).to_have_value("2h")
    since.fill("2026-07-20 12:30")
    # The time has the offset of its own day.
    since = page.get_by_label("From (GMT+2)")
    since.press("Enter")
    page.wait_for_url("**since=2026-07-20T10%3A30%3A00Z*")
    assert "until=2h" in page.url
    expect(since).to_have_value("2026-07-20 12:30:00")
    since.fill("2026-07-21")
    since.press("Enter")
    page.wait_for_url("**since=2026-07-20T22%3A00%3A00Z*")
    since.fill("Yesterday")
    since = page.locator("[name=since]")
    since.press("Enter")
    page.wait_for_url("**zone=Europe%2FBerlin*")
    expect(since).to_have_value("Yesterday")
    local = datetime.fromisoformat(since.get_attribute("data-instant") or "").astimezone(BERLIN)
    assert (local.hour, local.minute) == (0, 0)
    page.get_by_text("Save view").click()
    page.get_by_role("textbox", name="Name").fill("Since yesterday")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="Since yesterday")).to_have_attribute("href", re.compile("zone=Europe"))
    page.context.close()


def test_filters_keep_a_time_in_the_hour_that_stands_twice(
    chat_server: Server, chromium: Browser, signed_in: StorageState
) -> None:
    page = opened(chromium, signed_in, scripts=True)
    page.goto(f"{chat_server.url}/responses?since=2026-10-25T01:30:00Z&until=2026-10-25T01:40:00Z")
    expect(page.locator("[name=since]")).to_have_value("2026-10-25 02:30:00")
    expect(page.get_by_label("From (GMT+1)")).to_be_visible()
    page.locator("[name=q]").fill("greetings")
    page.locator("[name=q]").press("Enter")
    page.wait_for_url("**q=greetings*")
    assert "since=2026-10-25T01%3A30%3A00Z" in page.url
    assert "until=2026-10-25T01%3A40%3A00Z" in page.url
    page.context.close()


def test_axis_names_the_zones_where_summer_time_ends(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    chat_server.ask(model="chat", input="greetings")
    page = opened(chromium, signed_in, scripts=True)
    page.goto(f"{chat_server.url}/responses")
    axis = page.locator(".axis")
    for hours, texts in (("00 01", ["02:00:00 GMT+2", "02:00:00 GMT+1"]), ("03 04", ["04:00:00", "05:00:00"])):
        times = [f'<li><time datetime="2026-10-25T{hour}:00:00Z" data-format="H:i:s"></time></li>' for hour in hours.split()]
        axis.evaluate("(axis, times) => (axis.innerHTML = times)", "".join(times))
        expect(axis.locator("time")).to_have_text(texts)
    page.context.close()


def test_inspector_of_the_chat_has_local_times(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    page = opened(chromium, signed_in, scripts=True)
    page.goto(f"{chat_server.url}/chat/{uid}")
    page.get_by_role("button", name="Properties of answer").click()
    time = page.get_by_role("complementary", name="Properties of the response").locator("time")
    local = datetime.fromisoformat(time.get_attribute("datetime") or "").astimezone(BERLIN)
    expect(time).to_contain_text(f"{local:%Y-%m-%d %H:%M:%S} GMT")
    page.context.close()


def test_rows_of_live_updates_are_local(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    page = opened(chromium, signed_in, scripts=True)
    page.goto(f"{chat_server.url}/responses?live=1")
    uid = chat_server.ask(model="chat", input="greetings").json()["id"]
    time = page.locator(f"tr:has(a[href='/responses/{uid}']) time")
    instant = datetime.fromisoformat(time.get_attribute("datetime") or "")
    expect(time).to_contain_text(f"{instant.astimezone(BERLIN):%H:%M:%S}")
    page.context.close()


def test_without_scripts_times_are_in_utc(chat_server: Server, chromium: Browser, signed_in: StorageState) -> None:
    chat_server.ask(model="chat", input="greetings")
    page = opened(chromium, signed_in, scripts=False)
    page.goto(f"{chat_server.url}/responses")
    time = page.locator("#rows td time").first
    instant = datetime.fromisoformat(time.get_attribute("datetime") or "")
    expect(time).to_contain_text(f"{instant:%H:%M:%S}")
    expect(page.get_by_text("Times in UTC.")).to_be_visible()
    page.context.close()
