"""Page of the MCP servers in a browser: from the home page to the tools of a server."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.server.serve_command import Server
from tests.support.web.operator import sign_in_link

pytestmark = pytest.mark.browser


def test_page_shows_the_state_and_the_button_the_tools_of_a_server(tools_server: Server, page: Page) -> None:
    page.goto(sign_in_link(tools_server))
    page.goto(tools_server.url)
    page.get_by_role("link", name="MCP servers").click()
    result, closed = (page.get_by_role("region", name=name).get_by_role("status") for name in ("demo", "closed"))
    # Both are tested when the page opens.
    expect(closed).to_have_text("The MCP server cannot be reached.")
    expect(result).to_have_text("Connected. 3 tools.", use_inner_text=True)
    page.get_by_role("button", name="Test demo").click()
    expect(result).to_contain_text("Connected. 3 tools.")
    expect(result).to_contain_text("Get the current weather in a given location.")
    expect(result).to_contain_text("readOnlyHint: true")
    page.get_by_role("button", name="Test closed").click()
    expect(closed).to_have_text("The MCP server cannot be reached.")
    assert "secret" not in page.content()
