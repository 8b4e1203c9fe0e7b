"""Page of the operator for the tests of the rerun page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.support.web.browser import LIMIT_MS, PageErrors


@pytest.fixture
def page(chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a page as the operator, which must report no error until the end."""
    context = chromium.new_context(storage_state=signed_in, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    expect.set_options(timeout=LIMIT_MS)
    errors = PageErrors(page)
    yield page
    context.close()
    # A refused request is an error of the console, and shown by the page.
    assert [error for error in errors.seen if not error.startswith(("400 ", "Failed to load resource"))] == []
