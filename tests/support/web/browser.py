"""Chromium without its own windows, time limits of the browser, and errors that a page reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect, sync_playwright

from tests.run import BROWSERS, NO_BROWSER

LIMIT_MS = 180_000
# Each window of a whole Chromium renders two pages for the suggestions of its address bar, which takes longer than a page of ours. A second
# `--disable-features` replaces the first, so that those of Playwright that matter here are named again.
FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "MediaRouter",
    "OptimizationHints",
    "PaintHolding",
)
# A renderer process for each page costs a sixth of the time of the browser.
ARGUMENTS = ("--disable-gpu", "--renderer-process-limit=1", f"--disable-features={','.join(FEATURES)}")


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser. Skips the test if there is none."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(NO_BROWSER)
    expect.set_options(timeout=LIMIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class PageErrors:
    """Console errors, page errors and failed requests of a page."""

    def __init__(self, page: Page) -> None:
        self.seen: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.seen.append(str(error)))
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"{message.text} {message.location['url']}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.seen.append(f"{response.status} {response.url}")


@contextmanager
def opened_page(chromium: Browser, *expected: str, **options: Any) -> Iterator[Page]:
    """Open a page in a new context with `options`. At the end only errors that begin with an `expected` text may be recorded."""
    context = chromium.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    expect.set_options(timeout=LIMIT_MS)
    errors = PageErrors(page)
    yield page
    context.close()
    assert [error for error in errors.seen if not error.startswith(expected)] == []
