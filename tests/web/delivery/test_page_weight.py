"""Page weight: the files of a page have less than 60 kB, uncompressed, without data and without modules loaded on first use."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Response, expect

from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until
from tests.support.web.chat_visitor import Visitor
from tests.support.web.page_case import LARGEST

pytestmark = pytest.mark.browser
# The same files as they are sent.
LARGEST_COMPRESSED = 40_000
# A page that has asked, shown and edited has also fetched what that takes.
LARGEST_IN_USE = 80_000
KINDS = ("document", "stylesheet", "script")
# Modules that a page loads when a text needs them, counted apart.
ON_FIRST_USE = re.compile(r"/web/(vendor|markdown)/[\w-]+\.js$")
# Markdown with colours of code, without math.
LARGEST_ON_FIRST_USE = 150_000


class Scales:
    """Sizes of the files that a page fetches."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._fetched: list[Response] = []
        page.on("response", self._add)

    def wait(self) -> None:
        """Wait for a file beside the document: a busy browser reports responses later than the page. `evaluate` receives these."""
        wait_until(lambda: self._page.evaluate("true") and len(self.files) > 1)

    def end(self) -> None:
        """Take no more files of the page."""
        self._page.remove_listener("response", self._add)

    def _add(self, response: Response) -> None:
        self._fetched.append(response)

    @property
    def files(self) -> dict[str, int]:
        """Return the bytes of each file by name."""
        return {url.rpartition("/")[2]: size for url, size in self._sizes.items() if not ON_FIRST_USE.search(url)}

    @property
    def on_first_use(self) -> dict[str, int]:
        """Return the bytes of each module that is loaded on first use by name."""
        return {url.rpartition("/")[2]: size for url, size in self._sizes.items() if ON_FIRST_USE.search(url)}

    @property
    def compressed(self) -> int:
        """Return the sum of the sent bytes of the files."""
        return sum(int(one.headers["content-length"]) for one in self._ours if not ON_FIRST_USE.search(one.url))

    @property
    def _ours(self) -> list[Response]:
        return [one for one in self._fetched if one.request.resource_type in KINDS and one.status == 200]

    @property
    def _sizes(self) -> dict[str, int]:
        return {one.url: len(one.body()) for one in self._ours}

    @property
    def sum(self) -> int:
        return sum(self.files.values())


def test_no_page_weighs_more(chat_server: Server, visitor: Visitor, subtests: pytest.Subtests) -> None:
    page = visitor.page
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    uid = chat_server.ask(model="chat", input="lightweight greetings").json()["id"]
    # Searches for one response and for no conversation, as data does not count. API traffic may be listed or not.
    only, none = "?q=lightweight", "?q=absent"
    page.goto(f"{chat_server.url}/chat/{uid}/options")
    page.get_by_role("button", name="Make a link").click()
    shared = page.locator("#shared").inner_text().removeprefix(chat_server.url)
    tabs = ("", "/events", "/events/3", "/wire", "/prompt", "/cache", "/chain", "/check", "/delete", "/rerun")
    for path in (
        "/",
        f"/responses{only}",
        "/keys",
        "/keys/1",
        "/webhooks",
        "/mcp-servers",
        "/models",
        "/connect",
        "/files",
        "/vector-stores",
        "/containers",
        "/usage",
        "/storage",
        "/members",
        f"/chat/{uid}/options",
        shared,
        f"/chat{none}",
        f"/chat/{uid}{none}",
        *(f"/responses/{uid}{tab}" for tab in tabs),
    ):
        with subtests.test(path=path):
            scales = Scales(page)
            # Behind `load` the stylesheets have come; a busy browser may be idle before it has asked for them.
            page.goto(chat_server.url + path, wait_until="load")
            if "/events/" in path:
                # The player, which comes last, has named the event.
                expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("Event 3 of"))
            page.wait_for_load_state("networkidle")
            scales.wait()
            assert scales.sum < LARGEST, (path, scales.files)
            assert sum(scales.on_first_use.values()) < LARGEST_ON_FIRST_USE, (path, scales.on_first_use)
            assert scales.compressed < min(LARGEST_COMPRESSED, scales.sum), (path, scales.compressed)
            scales.end()


def test_the_page_of_an_event_fetches_what_plays_on_demand(chat_server: Server, visitor: Visitor) -> None:
    page = visitor.page
    uid = chat_server.ask(model="chat", input="lightweight greetings").json()["id"]
    scales = Scales(page)
    page.goto(f"{chat_server.url}/responses/{uid}/events/3", wait_until="load")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("Event 3 of"))
    page.wait_for_load_state("networkidle")
    on_demand = {"playback.js", "live.js", "output_item.js"}
    assert "player.js" in scales.files
    assert not scales.files.keys() & on_demand
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("response.completed")
    assert on_demand <= scales.files.keys()


def test_rare_scripts_are_fetched_on_demand(chat_server: Server, visitor: Visitor) -> None:
    scales = Scales(visitor.page)
    visitor.page.goto(f"{chat_server.url}/chat?q=absent", wait_until="networkidle")
    on_demand = {
        "tools.js",
        "calculator.js",
        "attachments.js",
        "problems.js",
        "editor.js",
        "markdown.js",
        "run.js",
        "carried_parameters.js",
        "thread_refresh.js",
        "thread_search.js",
    }
    assert not (scales.files | scales.on_first_use).keys() & on_demand
    assert scales.sum < LARGEST, scales.files
    visitor.send_and_wait("markdown", "A title")
    expect(visitor.last.locator(".markdown")).to_be_visible()
    visitor.page.get_by_role("button", name="Edit message").click()
    expect(visitor.page.get_by_label("Edited message")).to_be_focused()
    assert "editor.js" in scales.files
    assert "markdown.js" in scales.on_first_use
    assert scales.sum < LARGEST_IN_USE, scales.files
