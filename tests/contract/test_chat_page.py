"""Chat page with the demo models: answers are shown as stored, and an image is sent."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, FilePayload, expect

from tests.support.contract_server import Address
from tests.support.web.browser import started_browser
from tests.support.web.chat_visitor import Visitor
from tests.support.web.operator import sign_in_link

pytestmark = [pytest.mark.engine, pytest.mark.browser]


@pytest.fixture(scope="module")
def browser(server: Address) -> Iterator[Browser]:
    """Start a browser whose first context has the cookies of the operator."""
    with started_browser() as browser:
        browser.new_context().new_page().goto(sign_in_link(server.server))
        yield browser


@pytest.fixture
def visitor(server: Address, browser: Browser) -> Iterator[Visitor]:
    """Open the chat page."""
    visitor = Visitor(server.server, browser, storage_state=browser.contexts[0].storage_state())
    yield visitor
    visitor.close()
    assert visitor.errors.seen == []


def red_square() -> bytes:
    """Draw a red square."""
    picture = Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(picture).rectangle((16, 16, 48, 48), fill="red")
    into = BytesIO()
    picture.save(into, "PNG")
    return into.getvalue()


def test_a_person_talks_and_comes_back(visitor: Visitor) -> None:
    visitor.page.get_by_label("Model", exact=True).select_option("demo-chat")
    visitor.page.locator("details.settings > summary").click()
    visitor.page.get_by_label("Temperature").fill("0")
    visitor.page.locator("details.settings > summary").click()
    for count, text in enumerate(("Hello!", "Tell me a story."), 1):
        visitor.send(text)
        expect(visitor.answers).to_have_count(count)
        visitor.wait_for_end()
    story = visitor.fetched(visitor.uid)
    assert story["status"] == "completed"
    assert [item["type"] for item in story["output"]] == ["reasoning", "message"]
    visitor.page.reload()
    expect(visitor.answers).to_have_count(2)
    expect(visitor.last).to_contain_text(story["output"][1]["content"][0]["text"][:40])
    assert visitor.last.locator(".reasoning .plain").text_content() == story["output"][0]["content"][0]["text"]


def test_a_picture_that_was_attached_is_sent(visitor: Visitor) -> None:
    attach = visitor.page.locator("input[name=attachment]")
    picture = FilePayload(name="square.png", mimeType="image/png", buffer=red_square())
    visitor.page.goto(f"{visitor.page.url}?model=demo-harmony")
    attach.set_input_files(picture)
    expect(visitor.page.get_by_text("demo-harmony doesn’t accept images.")).to_be_visible()
    visitor.page.get_by_label("Model", exact=True).select_option("demo-chat")
    attach.set_input_files(picture)
    visitor.page.get_by_role("button", name="Remove square.png").click()
    attach.set_input_files(picture)
    expect(visitor.page.get_by_alt_text("square.png")).to_be_visible()
    visitor.send("What colour is it?")
    visitor.wait_for_end()
    assert visitor.fetched(visitor.uid)["status"] == "completed"
    visitor.page.reload()
    expect(visitor.page.locator("article.person .picture")).to_be_visible()
    expect(visitor.page.get_by_role("navigation", name="Conversations")).to_contain_text("What colour is it?")
