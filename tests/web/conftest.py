"""A server with a tape for the chat page, and people at it in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect, sync_playwright

from tests.run import BROWSER, NO_BROWSER
from tests.support.server.serve_command import Server
from tests.support.web.browser import LIMIT_MS, Troubles
from tests.support.web.chat_visitor import Visitor, tape

CHROMIUM = shutil.which(BROWSER)


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that says what the last word of a message asks for."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    folder = tmp_path_factory.mktemp("chat")
    server = Server(folder / "data", "--engine", tape(folder))
    try:
        yield server.ready()
    finally:
        server.end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser; every visitor has a fresh profile in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def signed_in(chat_server: Server, chromium: Browser) -> StorageState:
    """The cookies of the operator."""
    page = chromium.new_page()
    page.goto(chat_server.manage("signin", "--url", chat_server.url))
    return page.context.storage_state()


@pytest.fixture
def visitor(chat_server: Server, chromium: Browser, signed_in: StorageState) -> Iterator[Visitor]:
    """Somebody at the chat page, whose browser must have nothing to complain about at the end."""
    visitor = Visitor(chat_server, chromium, storage_state=signed_in)
    yield visitor
    visitor.close()
    assert visitor.troubles.seen == []


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a fresh browser, which must have nothing to complain about at the end."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page()
        page.set_default_timeout(LIMIT_MS)
        expect.set_options(timeout=LIMIT_MS)
        troubles = Troubles(page)
        yield page
        browser.close()
    assert troubles.seen == []
