"""Fixtures of the browser tests: a server with a tape, a browser, and visitors of the chat page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect, sync_playwright

from tests.run import BROWSER, NO_BROWSER
from tests.support.server.serve_command import Server
from tests.support.web.axe import axe_source
from tests.support.web.browser import LIMIT_MS, PageErrors
from tests.support.web.chat_visitor import Visitor, tape

CHROMIUM = shutil.which(BROWSER)


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core."""
    return axe_source()


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with the tape of `chat_visitor`."""
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
    """Start a browser, shared by all tests. Every visitor has a separate context."""
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
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
    """Open the chat page. At the end no browser error may be recorded."""
    visitor = Visitor(chat_server, chromium, storage_state=signed_in)
    yield visitor
    visitor.close()
    assert visitor.errors.seen == []


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
        troubles = PageErrors(page)
        yield page
        browser.close()
    assert troubles.seen == []
