"""Inspector of an answer in the chat, in a real browser: a column on a wide screen, a sheet on a phone, loaded with its first use."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.web.axe import violations
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "is_beside"), [(1440, True), (390, False)])
def test_properties_open_beside_an_answer_or_above_it(visitor: Visitor, axe: str, width: int, *, is_beside: bool) -> None:
    page = visitor.page
    page.set_viewport_size({"width": width, "height": 844})
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    visitor.send("greetings")
    visitor.wait_for_end()
    assert not [url for url in loaded if "inspector" in url]
    info = visitor.last.get_by_role("button", name="Properties of answer")
    info.click()
    panel = page.get_by_role("complementary", name="Properties of the response")
    expect(panel).to_contain_text(visitor.uid)
    expect(panel).to_contain_text("Finish reason")
    expect(panel.get_by_role("button", name="Copy response ID")).to_be_visible()
    expect(info).to_have_attribute("aria-expanded", "true")
    uid = visitor.uid.rpartition("/")[2]
    expect(panel.get_by_role("tab", name="Cache", exact=True)).to_have_attribute("href", f"/responses/{uid}/cache")
    assert violations(page, axe) == []
    box, answer = panel.bounding_box(), visitor.last.bounding_box()
    assert box
    assert answer
    if is_beside:
        assert box["x"] >= answer["x"] + answer["width"]
    else:
        assert box["width"] == width
        assert box["y"] + box["height"] == 844
    # The parts of the page of the response, as that page shows them.
    panel.get_by_role("tab", name="Properties").focus()
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_role("tabpanel", name="Request").locator(".hljs-attr", has_text='"model"').first).to_be_visible()
    panel.get_by_role("tab", name="Events").click()
    events = panel.get_by_role("tabpanel", name="Events")
    expect(events).to_contain_text("response.completed")
    expect(panel.get_by_text("Finish reason")).to_be_hidden()
    assert events.evaluate("(part) => part.scrollWidth <= part.clientWidth")
    assert violations(page, axe) == []
    panel.get_by_role("tab", name="Prompt").click()
    expect(panel.get_by_role("tabpanel", name="Prompt")).to_contain_text("Exact prompt")
    expect(page).to_have_url(re.compile(f"/chat/{visitor.uid}$"))
    panel.get_by_role("tab", name="Properties").click()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(info).to_be_focused()
    info.click()
    panel.get_by_role("link", name="Response", exact=True).click()
    expect(page).to_have_url(f"{visitor.server.url}/responses/{uid}")
