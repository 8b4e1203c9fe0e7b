"""Chat page with code, web search and file search: a plot and a file, citations of pages and files, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from responses_app.sandbox.launch import packages
from responses_app.sandbox.options import RunnerOptions
from responses_app.tools.code_interpreter.setting import DEMO_STARTUP, read_startup_code
from tests.support.sandbox.runner import PACKAGES, runner
from tests.support.server.serve_command import Server
from tests.support.web.axe import violations
from tests.support.web.chat_visitor import HOLD, Visitor, held, matching_tape
from tests.support.web.house_rules import add_house_rules

pytestmark = pytest.mark.browser
WIDTH = "image => image.decode().then(() => image.naturalWidth, () => 0)"
CODE = 'plot(9)\nopen("/mnt/data/squares.csv", "w").write("1,4,9")\nprint("written")'
FILE = re.compile("^/containers/cntr_.*/files/cfile_.*/content$")
PAGE = "https://tides.example/spring.html"
# Ends of messages, and the texts that the model generates for each, one after the other.
TEXTS = {
    'plot(9)".': (
        f"<|channel|>analysis to=python code<|message|>{CODE}<|call|>",
        f"<|channel|>final<|message|>See [the table](sandbox:/mnt/data/squares.csv).{HOLD} Well.<|return|>",
    ),
    "What are spring tides?": (
        '<|channel|>analysis to=browser.search code<|message|>{"query": "tides"}<|call|>',
        f"<|channel|>final<|message|>The sun and the moon pull in one line ([Spring tides]({PAGE})).<|return|>",
    ),
    "How many days?": (
        '<|channel|>commentary to=functions.file_search <|constrain|>json<|message|>{"query": "vacation"}<|call|>',
        f"<|channel|>final<|message|>You have 30 days【0†rules.txt】【0†rules.txt】.{HOLD} Enjoy.<|return|>",
    ),
}


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with the demo tools, and a sandbox with matplotlib and the startup code of the demo."""
    try:
        packages.install(PACKAGES)
    except packages.PackagesMissing as error:
        pytest.skip(f"no package index: {error}")
    folder = tmp_path_factory.mktemp("tools")
    options = RunnerOptions(startup_code=read_startup_code(DEMO_STARTUP))
    with runner(folder, options, with_packages=True) as sandbox:
        engine = matching_tape(folder, TEXTS, dict.fromkeys(TEXTS, 0.01))
        with Server(folder / "data", "--engine", engine, "--demo-tools", RESPONSES_SANDBOX_URL=sandbox.url) as server:
            yield server.ready()


def test_code_that_draws_a_plot_is_seen_as_a_picture(visitor: Visitor, axe: str) -> None:
    page = visitor.page
    assert violations(page, axe) == []
    # The browser remembers the tools of the last conversation, and the example switches them off.
    page.locator("details.tool-menu > summary").click()
    page.get_by_label("Weather", exact=True).check()
    page.locator("details.tool-menu > summary").click()
    table = visitor.last.locator(".message").get_by_role("link", name="the table", exact=True)
    with held(visitor.server):
        # By keyboard, as the button of an example is a button.
        page.get_by_role("button", name='Run the code "plot(9)".').press("Enter")
        expect(table).to_have_attribute("href", FILE)
        expect(visitor.last).to_have_attribute("aria-busy", "true")
    card = page.get_by_role("article", name="Code run by the server")
    expect(card.get_by_role("group", name="Code")).to_contain_text("plot(9)")
    image = card.get_by_role("img", name="Image 1 of this item")
    expect(image).to_be_visible()
    assert image.evaluate(WIDTH) > 100
    expect(card).to_contain_text("written")
    expect(card).to_contain_text("Done")
    visitor.wait_for_end()
    assert violations(page, axe) == []
    page.reload()
    assert image.evaluate(WIDTH) > 100
    with page.expect_download() as download:
        table.click()
    assert download.value.path().read_text() == "1,4,9"
    page.locator("details.tool-menu > summary").press("Enter")
    expect(page.get_by_label("Code interpreter")).to_be_checked()
    expect(page.get_by_label("Web search")).not_to_be_checked()
    expect(page.get_by_label("Weather", exact=True)).not_to_be_checked()
    expect(page.locator(".inherited")).to_be_hidden()


def test_web_search_shows_the_pages_and_the_citation_is_a_link(visitor: Visitor, axe: str) -> None:
    page = visitor.page
    page.locator("details.tool-menu > summary").click()
    page.get_by_label("Web search").check()
    page.get_by_label("demo", exact=True).uncheck()
    page.locator("details.tool-menu > summary").click()
    visitor.send_and_wait("What are spring tides?", "in one line")
    card = page.get_by_role("article", name="Web search by the server")
    expect(card.get_by_role("group", name="Query")).to_have_text("tides")
    expect(card.get_by_role("link", name="Spring tides")).to_have_attribute("href", PAGE)
    expect(visitor.last.locator(".message").get_by_role("link", name="Spring tides")).to_have_attribute("href", PAGE)
    (annotation,) = visitor.fetched(visitor.uid)["output"][-1]["content"][0]["annotations"]
    assert (annotation["type"], annotation["url"]) == ("url_citation", PAGE)
    assert violations(page, axe) == []
    page.reload()
    expect(card.get_by_role("link", name="Spring tides")).to_be_visible()


def test_file_search_shows_the_passages_and_the_citation_names_the_file(visitor: Visitor, axe: str) -> None:
    store = add_house_rules(visitor.server)
    page = visitor.page
    page.reload()
    page.locator("details.tool-menu > summary").click()
    page.get_by_label("File search").select_option("House rules")
    page.get_by_label("demo", exact=True).uncheck()
    page.locator("details.tool-menu > summary").click()
    link = visitor.last.locator(".message").get_by_role("link", name="rules.txt")
    with held(visitor.server):
        visitor.send("How many days?")
        expect(visitor.last.locator(".message")).to_have_text("You have 30 days (rules.txt).")
        expect(link).to_have_attribute("href", re.compile("^/files/file-.*/content$"))
        expect(visitor.last).to_have_attribute("aria-busy", "true")
    visitor.wait_for_end()
    expect(visitor.last.locator(".message")).to_have_text("You have 30 days (rules.txt). Enjoy.")
    card = page.get_by_role("article", name="File search by the server")
    expect(card.get_by_role("group", name="Query")).to_have_text("vacation")
    expect(card).to_contain_text("rules.txt")
    expect(card).to_contain_text("Each employee has 30 days of vacation.")
    assert violations(page, axe) == []
    with page.expect_download() as download:
        link.click()
    assert "30 days" in download.value.path().read_text()
    page.reload()
    expect(page.locator("select[name=store]")).to_have_value(store)
    # A stranger has no files to open.
    page.get_by_role("link", name="Options of How many days?").click()
    page.get_by_role("button", name="Make a link").click()
    page.goto(page.locator("#shared").inner_text().strip())
    expect(page.locator(".markdown")).to_have_text("You have 30 days (rules.txt). Enjoy.")
    expect(page.locator(".markdown a")).to_have_count(0)
