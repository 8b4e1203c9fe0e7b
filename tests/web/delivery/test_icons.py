"""Icons: every icon that a template or a script names is in the sprite, and browsers draw it under the policy of the pages."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from responses_app.installation.data_dir import ROOT
from tests.support.web.chat_visitor import Visitor

STATIC = ROOT / "responses_app" / "static" / "web"
SYMBOLS = re.findall(r'<symbol id="([a-z]+)"', (STATIC / "icons.svg").read_text())


def test_every_named_icon_is_in_the_sprite() -> None:
    sources = [*(ROOT / "templates").rglob("*.html"), *STATIC.rglob("*.js")]
    named = {name for path in sources for name in re.findall(r'(?:{% icon |\bicon\()"(\w+)"', path.read_text())}
    assert named, "no icon is named at all"
    assert named <= set(SYMBOLS)


@pytest.mark.browser
def test_browsers_draw_the_icons_of_the_header_and_the_favicon(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Chat")).to_be_visible()
    # The box of a symbol that was not found, or not allowed, is empty.
    widths = page.evaluate("[...document.querySelectorAll('.top use')].map((one) => one.getBBox().width)")
    assert len(widths) == page.get_by_role("navigation", name="Main").get_by_role("link").count()
    assert min(widths) > 0
    icon = page.locator("link[rel=icon]").get_attribute("href")
    assert icon
    answer = page.request.get(visitor.server.url + icon)
    assert answer.headers["content-type"] == "image/svg+xml"


def test_type_has_four_sizes() -> None:
    theme = (STATIC / "theme.css").read_text()
    sizes = re.findall(r"--(small|normal|large|title): [\d.]+rem;", theme)
    assert sizes == ["small", "normal", "large", "title"]
    fonts = {
        (path.name, size)
        for path in STATIC.rglob("*.css")
        for size in re.findall(r"font(?:-size)?: ([^;}]+)", path.read_text())
        if not re.match(r"inherit|var\(--(small|normal|large|title)\)|\.\d+em", size)
    }
    assert not fonts
