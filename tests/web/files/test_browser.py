"""Pages of files in a browser: upload a file, make a vector store, add the file, and what a refusal says."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.support.web.axe import violations
from tests.support.web.chat_visitor import Visitor

pytestmark = pytest.mark.browser
NOTES = FilePayload(name="notes <b>.txt", mimeType="text/plain", buffer=b"Foxes hunt at night.")


def test_an_uploaded_file_is_added_to_a_new_store(visitor: Visitor, axe: str) -> None:
    page = visitor.page
    page.goto(f"{visitor.server.url}/files")
    with page.expect_navigation():
        page.get_by_label("Upload").set_input_files([NOTES])
    expect(page.get_by_role("region", name="List of files")).to_contain_text("notes <b>.txt")
    assert violations(page, axe) == []
    tabs = page.get_by_role("navigation", name="Files")
    expect(tabs.get_by_role("link")).to_have_text(["Files", "Vector stores", "Containers", "MCP"])
    tabs.get_by_role("link", name="Vector stores").click()
    page.get_by_label("Name of the new store").fill("House rules")
    page.get_by_role("button", name="New store").click()
    expect(page.get_by_role("heading", name="House rules")).to_be_visible()
    page.get_by_label("File", exact=True).select_option("notes <b>.txt")
    page.get_by_role("button", name="Add file").click()
    shown = page.get_by_role("region", name="Files of the vector store")
    expect(shown).to_contain_text("notes <b>.txt")
    page.get_by_label("Upload and add").set_input_files([FilePayload(name="more.txt", mimeType="text/plain", buffer=b"More.")])
    expect(shown).to_contain_text("more.txt")
    assert violations(page, axe) == []
    for name in ("Containers", "MCP"):
        page.get_by_role("navigation", name="Files").get_by_role("link", name=name).click()
        expect(page.get_by_role("navigation", name="Files").get_by_role("link", name=name)).to_have_attribute(
            "aria-current", "page"
        )


def test_a_long_name_has_the_width_of_words_on_a_tablet(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 768, "height": 900})
    page.goto(f"{visitor.server.url}/files")
    name = "a-file-with-a-long-name-that-nobody-would-type-but-exports-make.csv"
    with page.expect_navigation():
        page.get_by_label("Upload").set_input_files([FilePayload(name=name, mimeType="text/csv", buffer=b"a,b")])
    box = page.get_by_role("cell", name=name).first.bounding_box()
    assert box is not None
    assert box["width"] >= 11 * 16


def test_a_refused_upload_is_explained(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server.url}/files")
    page.route("**/v1/files", lambda route: route.fulfill(status=413, json={"error": {"message": "The file is too large."}}))
    page.get_by_label("Upload").set_input_files([NOTES])
    expect(page.get_by_role("main").get_by_role("status")).to_have_text(f"{NOTES['name']}: The file is too large.")
    # The browser reports the answer, which the test made.
    visitor.errors.seen.clear()
