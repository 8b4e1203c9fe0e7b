"""Page of the keys in a browser: a key with a long name."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser


def test_long_name_moves_no_button_out_of_view(visitor: Visitor) -> None:
    page, name = visitor.page, f"key of a long name {'x' * 80}"
    page.goto(f"{visitor.server.url}/keys")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create key").click()
    row = page.get_by_role("row").filter(has_text=name)
    revoke = row.get_by_role("link", name="Revoke")
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 800})
        box = revoke.bounding_box()
        assert box
        assert box["x"] + box["width"] <= width, width
    revoke.click()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.locator(".messages")).to_contain_text("revoked")
