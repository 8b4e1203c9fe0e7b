"""The list of conversations: harmless titles, a search that keeps the open conversation, a long list beside the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from playwright.sync_api import expect

from responses_app.installation.database_url import superuser_url
from tests.support.server.serve_command import Server
from tests.support.web.axe import violations
from tests.support.web.chat_visitor import SLOWLY, Visitor, held

pytestmark = pytest.mark.browser
ODD = "\x1b[31m \u202e greetings"
RAW = re.compile("[\x1b\u202e]")


def test_titles_show_control_characters_by_name(visitor: Visitor) -> None:
    uid = visitor.server.ask(model="chat", input=ODD).json()["id"]
    visitor.page.goto(f"{visitor.server.url}/chat/{uid}?everything=1")
    expect(visitor.answers).to_have_count(1)
    entry = visitor.page.locator(".threads [aria-current=page]")
    expect(entry).to_contain_text("U+202E")
    assert not RAW.search(visitor.page.locator(".threads").inner_html())
    assert not RAW.search(visitor.page.title())
    # The page itself names the title once a message is sent.
    visitor.page.goto(f"{visitor.server.url}/chat")
    visitor.send(ODD)
    visitor.wait_for_end()
    assert not RAW.search(visitor.page.title())
    assert "greetings" in visitor.page.title()


def test_a_search_keeps_the_conversation_and_its_stream(visitor: Visitor) -> None:
    visitor.send_and_wait("okapi greetings", "Hello")
    with held(visitor.server):
        visitor.send("slowly")
        expect(visitor.last).to_contain_text("word2")
        search = visitor.page.get_by_role("searchbox")
        search.fill("okapi")
        search.press("Enter")
        threads = visitor.page.locator(".threads")
        expect(threads.locator("li")).to_have_count(1)
        expect(visitor.page.get_by_role("navigation", name="Conversations").get_by_role("status")).to_have_text("1 result")
        expect(visitor.answers).to_have_count(2)
        expect(visitor.page.get_by_role("button", name="Stop")).to_be_visible()
    visitor.wait_for_end()
    expect(visitor.last.locator(".message")).to_have_text(SLOWLY)
    # A hit keeps the search, and so does a reload.
    threads.get_by_role("link").first.click()
    expect(visitor.answers).to_have_count(2)
    expect(search).to_have_value("okapi")
    expect(threads.locator("li")).to_have_count(1)
    visitor.page.reload()
    expect(visitor.answers).to_have_count(2)
    expect(search).to_have_value("okapi")
    # An emptied field lists all of them again.
    search.fill("")
    expect(threads.locator("li")).not_to_have_count(1)
    assert "q=" not in visitor.page.url
    expect(visitor.answers).to_have_count(2)


@pytest.fixture
def long_project(chat_server: Server) -> Iterator[str]:
    """Add a project with a long name, of which the operator is a member."""
    name = "Research and development of the northern branch office"
    with psycopg.connect(superuser_url(chat_server.folder), autocommit=True) as connection:
        insert = "INSERT INTO responses_app_membership (user_id, project, role, by_provider) SELECT id, %s, 2, false FROM auth_user LIMIT 1"
        connection.execute(insert, [name])
        yield name
        connection.execute("DELETE FROM responses_app_membership WHERE project = %s", [name])


def test_button_beside_a_project_with_a_long_name_is_in_view(visitor: Visitor, long_project: str) -> None:
    page = visitor.page
    page.reload()
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 800})
        if width == 390:
            page.get_by_role("button", name="Conversations").click()
        threads = page.get_by_role("navigation", name="Conversations")
        button, box = threads.get_by_role("button", name="Show").bounding_box(), threads.bounding_box()
        assert button
        assert box
        assert button["x"] + button["width"] <= box["x"] + box["width"], width
        # The word stands in one line.
        assert button["height"] < 45, width
    threads.get_by_label("Project").select_option(long_project)
    threads.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("project=Research"))


def test_send_is_at_the_right_end_of_the_frame(visitor: Visitor) -> None:
    for width in (390, 1280, 1440, 1920):
        visitor.page.set_viewport_size({"width": width, "height": 800})
        frame = visitor.page.locator(".frame").bounding_box()
        send = visitor.page.get_by_role("button", name="Send", exact=True).bounding_box()
        model = visitor.page.get_by_label("Model", exact=True).bounding_box()
        assert frame
        assert send
        assert model
        assert 0 <= frame["x"] + frame["width"] - send["x"] - send["width"] <= 16, width
        # One row with the other controls.
        assert send["height"] < 45, width
        header = visitor.page.locator("header.top").bounding_box()
        assert header
        assert header["height"] < 90, width
        if width == 390:
            # A line of its own, as the name would be cut beside the buttons.
            assert model["y"] + model["height"] <= send["y"] + 2, width
        else:
            assert abs(send["y"] + send["height"] / 2 - model["y"] - model["height"] / 2) <= 4, width


def test_more_threads_than_fit_move_neither_the_composer_nor_the_header(visitor: Visitor) -> None:
    for number in range(31):
        visitor.server.ask(model="chat", input=f"Number {number} greetings")
    visitor.page.set_viewport_size({"width": 1200, "height": 600})
    visitor.send_and_wait("greetings", "Hello there!")
    visitor.page.reload()
    visitor.page.goto(f"{visitor.page.url}?everything=0")
    expect(visitor.page.locator(".threads")).not_to_contain_text("Number 30 greetings")
    visitor.page.get_by_role("switch", name="API traffic of the project", checked=False).click()
    expect(visitor.page.get_by_role("switch", checked=True)).to_be_in_viewport()
    expect(visitor.answers).to_have_count(1)
    box = visitor.page.locator("form.composer").bounding_box()
    assert box
    assert abs(box["y"] + box["height"] - 600) <= 1
    assert visitor.page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
    visitor.page.locator("#threads").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    visitor.page.mouse.wheel(0, 5000)
    header = visitor.page.locator("header.top").bounding_box()
    assert header
    assert header["y"] == 0
    # Older ones are added to the list, and the conversation stays.
    visitor.page.get_by_role("link", name="Show older").click()
    expect(visitor.page.locator(".threads")).to_contain_text("Number 0 greetings")
    expect(visitor.answers).to_have_count(1)


def test_options_of_a_conversation_in_a_dialog(visitor: Visitor, axe: str) -> None:
    visitor.send_and_wait("wombat greetings", "Hello")
    threads = visitor.page.locator(".threads")
    threads.get_by_role("link", name="Options of wombat greetings").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("About wombats")
    dialog.get_by_role("button", name="Rename").click()
    # Behind a modal dialog nothing has a role.
    expect(threads.get_by_text("About wombats")).to_be_visible()
    expect(dialog.get_by_role("button", name="Rename")).to_be_focused()
    dialog.get_by_role("button", name="Pin to the top").press("Enter")
    expect(dialog.get_by_role("button", name="Unpin")).to_be_focused()
    expect(threads.locator("h2").first).to_have_text("Pinned")
    assert violations(visitor.page, axe) == []
    with visitor.page.expect_download() as download:
        dialog.get_by_role("link", name="Markdown").press("Enter")
    assert download.value.suggested_filename.startswith("about-wombats.")
    assert "wombat greetings" in download.value.path().read_text()
    dialog.get_by_role("button", name="Make a link").press("Enter")
    expect(dialog.locator("#shared")).to_be_focused()
    dialog.get_by_role("button", name="Revoke link").press("Enter")
    expect(dialog.get_by_role("button", name="Make a link")).to_be_focused()
    dialog.get_by_role("button", name="Make a link").press("Enter")
    link = dialog.locator("#shared").inner_text()
    dialog.get_by_role("button", name="Close").click()
    expect(threads.get_by_role("link", name="Options of About wombats")).to_be_focused()
    # The conversation is still open, and the link works without a sign-in.
    expect(visitor.answers).to_have_count(1)
    stranger = visitor.page.context.browser
    assert stranger
    page = stranger.new_page()
    page.goto(link)
    expect(page.get_by_role("heading", name="About wombats")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("Hello")
    assert violations(page, axe) == []
    page.close()
    threads.get_by_role("link", name="Options of About wombats").click()
    dialog.get_by_text("Delete this conversation").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(visitor.page.get_by_text("Deleted the conversation.")).to_be_visible()
    expect(threads.get_by_text("About wombats")).to_have_count(0)


def test_options_that_were_not_changed_say_so_and_keep_the_text(visitor: Visitor) -> None:
    visitor.send_and_wait("quokka greetings", "Hello")
    visitor.page.locator(".threads").get_by_role("link", name="Options of quokka greetings").click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog.get_by_label("Title")).to_be_visible()
    visitor.page.context.clear_cookies(name=re.compile("session"))
    dialog.get_by_label("Title").fill("About quokkas")
    dialog.get_by_role("button", name="Rename").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Nothing was changed: your session has ended")
    expect(dialog.get_by_label("Title")).to_have_value("About quokkas")
    visitor.errors.seen.clear()
