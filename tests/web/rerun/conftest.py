"""Page of the operator for the tests of the rerun page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests.support.web.browser import opened_page


@pytest.fixture
def page(chromium: Browser, signed_in: StorageState) -> Iterator[Page]:
    """Open a page as the operator, which must report no error until the end."""
    # A refused request is an error of the console, and shown by the page.
    with opened_page(
        chromium, "400 ", "503 ", "Failed to load resource", storage_state=signed_in, viewport={"width": 1440, "height": 900}
    ) as page:
        yield page
