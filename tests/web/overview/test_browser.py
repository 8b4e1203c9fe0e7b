"""Overview in a browser: at no width a total covers another, and a number leads to the list."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support import plain_http
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
HIDDEN = "[...document.querySelectorAll('.totals > div')].filter((one) => one.scrollHeight > one.clientHeight + 1).length"
CUT_HEADINGS = (
    "[...document.querySelectorAll('.aligned thead th')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
)


def test_totals_keep_apart_and_stand_beside_their_panels(visitor: Visitor) -> None:
    for text in ("greetings", "markdown", "breakage"):
        visitor.server.ask(model="chat", input=text, background=text == "breakage")
    # 720 is a window of 1440 at twice the size.
    for width in (390, 720, 900, 1440):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        visitor.page.goto(f"{visitor.server.url}/")
        assert visitor.page.evaluate(HIDDEN) == 0, width
        chart, totals = visitor.page.locator("svg.chart").bounding_box(), visitor.page.locator(".totals").bounding_box()
        assert chart
        assert totals
        assert abs(chart["height"] - totals["height"]) <= 1
        assert abs(chart["y"] - totals["y"]) <= 1
        first, last = (
            visitor.page.locator(".scales span").first.bounding_box(),
            visitor.page.locator(".scales span").last.bounding_box(),
        )
        assert first
        assert last
        # The middle of a number is at the height of its line.
        room = chart["height"] / 5 * 6 / 80
        assert abs(first["y"] + first["height"] / 2 - chart["y"] - room) <= 2
        assert abs(last["y"] + last["height"] / 2 - chart["y"] - chart["height"] + room) <= 2
    visitor.page.get_by_text("Table of these charts").click()
    expect(visitor.page.get_by_role("region", name="Figures by time").get_by_role("row").last).to_be_visible()
    visitor.page.get_by_role("link", name="7 days").click()
    visitor.page.locator(".totals .failed").click()
    expect(visitor.page.get_by_role("table").locator(".status.failed").first).to_be_visible()
    assert "since=7d" in visitor.page.url
    # The slowest of a percentile are in its list.
    for name, field in (
        ("Time to first token (s)", "Min TTFT (s)"),
        ("Tokens per second", "Min tokens/s"),
        ("Duration (s)", "Min duration (s)"),
    ):
        visitor.page.goto(f"{visitor.server.url}/")
        visitor.page.locator(".totals > div", has_text=name).get_by_role("link").last.click()
        expect(visitor.page.get_by_label(field)).to_have_value(re.compile(r"\d"))
        expect(visitor.page.locator("#rows tbody tr").first).to_be_visible()


def test_header_of_a_phone_shows_every_section_and_sign_out(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.page.goto(f"{visitor.server.url}/")
    sections = visitor.page.get_by_role("navigation", name="Main")
    for one in (*sections.get_by_role("link").all(), sections.get_by_role("button", name="Sign out")):
        box = one.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, one.inner_text()


def test_a_table_of_a_phone_shows_that_it_scrolls_and_keeps_the_name_of_the_row(visitor: Visitor) -> None:
    server = visitor.server
    server.ask(model="chat", input="greetings")
    body = {"model": "chat", "store": True, "messages": [{"role": "user", "content": "greetings"}]}
    headers = {"Authorization": f"Bearer {server.key}"}
    plain_http.post(f"{server.url}/v1/chat/completions", json=body, headers=headers).raise_for_status()
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.page.goto(f"{server.url}/")
    region = visitor.page.get_by_role("region", name="Figures by api format")
    expect(region).to_be_visible()
    name = region.locator("tbody th").first
    before, inside = name.bounding_box(), region.evaluate("(one) => [one.clientWidth, one.scrollWidth]")
    assert inside[0] < inside[1]
    assert region.evaluate("(one) => getComputedStyle(one).backgroundImage").count("gradient") == 4
    region.evaluate("(one) => (one.scrollLeft = 300)")
    assert name.bounding_box() == before
    # No heading runs into the next one.
    assert visitor.page.evaluate(CUT_HEADINGS) == 0
