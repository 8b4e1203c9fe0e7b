"""Fixtures of the browser tests: a server with a tape, a browser, and visitors of the chat page.

One worker runs all tests of this folder, those with a browser last, so that the server and the browser start once. The event loop of
Playwright, which runs until its browser is closed, does not allow the asynchronous tests beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState

from responses_app.installation.data_dir import ROOT
from tests.support.mcp.serving import STDIO, demo_mcp_server
from tests.support.server.serve_command import Server
from tests.support.suite import lanes
from tests.support.web.axe import axe_source
from tests.support.web.browser import opened_page, started_browser
from tests.support.web.chat_visitor import Visitor, tape
from tests.support.web.operator import sign_in_link

FOLDER = "tests/web/"
# MCP servers of the operator: the one of the tests, and one that cannot be reached, with secrets.
MCP_SERVERS = {
    "files": {"command": list(STDIO), "env": {"PYTHONPATH": str(ROOT)}, "description": "Files <of> the tests"},
    "closed": {
        "url": "http://127.0.0.1:9/mcp?key=query-secret",
        "headers": {"X-Key": "hdr-secret-value"},
        "connector_id": "connector_closed",
    },
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.nodeid.startswith(FOLDER) and lanes.lane(item) == "browser")


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core."""
    return axe_source()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Start a browser, shared by all tests. Every visitor has a separate context."""
    with started_browser() as browser:
        yield browser


@pytest.fixture(scope="package")
def chat_server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with the tape of `chat_visitor`."""
    folder = tmp_path_factory.mktemp("chat")
    with Server(folder / "data", "--engine", tape(folder)) as server:
        yield server.ready()


@pytest.fixture(scope="package")
def tools_server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with the tape of `chat_visitor`, `MCP_SERVERS`, and the MCP server of the demo as `demo`."""
    folder = tmp_path_factory.mktemp("tools")
    with demo_mcp_server() as demo:
        servers = json.dumps({**MCP_SERVERS, "demo": {"url": demo}})
        with Server(folder / "data", "--engine", tape(folder), RESPONSES_MCP_SERVERS=servers) as server:
            yield server.ready()


@pytest.fixture(scope="package")
def cookies() -> dict[str, StorageState]:
    """Return the cookies of the operators by the URLs of the servers."""
    return {}


@pytest.fixture(scope="module")
def signed_in(chat_server: Server, chromium: Browser, cookies: dict[str, StorageState]) -> StorageState:
    """Return the cookies of the operator."""
    if chat_server.url not in cookies:
        context = chromium.new_context()
        context.new_page().goto(sign_in_link(chat_server))
        cookies[chat_server.url] = context.storage_state()
        context.close()
    return cookies[chat_server.url]


@pytest.fixture
def visitor(chat_server: Server, chromium: Browser, signed_in: StorageState) -> Iterator[Visitor]:
    """Open the chat page. At the end no browser error may be recorded."""
    visitor = Visitor(chat_server, chromium, storage_state=signed_in)
    yield visitor
    visitor.close()
    assert visitor.errors.seen == []


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Open a page without cookies, which must report no error until the end."""
    with opened_page(chromium) as page:
        yield page
