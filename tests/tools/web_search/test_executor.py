"""Web search executor: searches, pages and matches in order, references after a take-over, filters and failures."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.citations.sources import WebSource
from responses_app.protocol.deltas import Delta, SearchStarted, WebResult, WebSearch
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.web_search.backends.base import SearchContext, SearchFailed, SearchResult
from responses_app.tools.web_search.backends.folder import FolderBackend
from responses_app.tools.web_search.executor import TOO_SLOW, WebSearchExecutor, WebSearchOptions
from responses_app.tools.web_search.pages.fetcher import PageFetcher
from responses_app.tools.web_search.reader import PageReader
from tests.support.web_search.pages_folder import MOON, OTHER, SUN, write_pages

SEARCH, OPEN, FIND = "web_search", "open_page", "find_in_page"
Call = tuple[str, Mapping[str, Any] | str]


class FailingBackend:
    """Search back end that fails, or that never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs

    async def search(self, query: str, context: SearchContext) -> Sequence[SearchResult]:
        if self.hangs:
            await asyncio.Event().wait()
        raise SearchFailed("The search service SearXNG answered with HTTP status 500.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_pages(tmp_path)


def executor(backend: Any, tool: Mapping[str, Any] | None = None, timeout_s: float = 20.0) -> WebSearchExecutor:
    options = WebSearchOptions.of(tool or {})
    reader = PageReader("project", backend, PageFetcher(domains=options.context.domains))
    return WebSearchExecutor(options, backend, reader, timeout_s)


def item(call: Call) -> dict[str, Any]:
    function, arguments = call
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "web_search_call", "id": "ws_1", "status": "in_progress", "function": function, "arguments": text}


def closed(result: WebResult) -> dict[str, Any]:
    """Return the item of a result as a later prompt has the item."""
    output = ModelOutput(result.model_text)
    return {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": result.action, MODEL_OUTPUT: output}


def run(tools: WebSearchExecutor, *calls: Call, items: Sequence[Mapping[str, Any]] = ()) -> list[WebResult]:
    async def run_all() -> list[WebResult]:
        tools.offer(items)
        reported: list[Delta] = []
        try:
            return [await tools.run(item(call), reported.append) for call in calls]
        finally:
            await tools.close()
            assert reported == [SearchStarted()] * len(reported)

    return asyncio.run(run_all())


def body(result: WebResult) -> str:
    """Return the display of a result, without the markers."""
    assert result.model_text is not None
    match = re.fullmatch(r"[^\n]+\n<untrusted ([0-9a-f]{16})>\n(.*)\n</untrusted \1>", result.model_text, re.DOTALL)
    assert match, result.model_text
    return match[2]


def test_search_shows_results_between_markers(folder: Path) -> None:
    (result,) = run(executor(FolderBackend(folder)), (SEARCH, {"query": "moon tides"}))
    assert result.action == {
        "type": "search",
        "query": "moon tides",
        "queries": ["moon tides"],
        "sources": [{"type": "url", "url": url} for url in (MOON, OTHER, SUN)],
    }
    assert not result.failed
    lines = body(result).split("\n")
    assert lines[0] == "[0] Search results for “moon tides”"
    assert lines[3:5] == ["L0: 【0†Tides and the moon†tides.example】", f"L1: {MOON}"]
    assert "【1†tides†elsewhere.example】" in body(result)


def test_page_is_opened_by_number_and_shown_in_windows(folder: Path) -> None:
    tools = executor(FolderBackend(folder), {"search_context_size": "low"})
    _, first, second = run(
        tools, (SEARCH, {"query": "moon"}), (OPEN, {"id": 0}), (OPEN, {"line": 600, "cursor": 1, "num_lines": 2})
    )
    assert first.action == second.action == {"type": "open_page", "url": MOON}
    assert body(first).startswith(f"[1] Tides and the moon ({MOON})\n**viewing lines [0 - 49] of 604**\n\nL0: # Tides\n")
    assert "See 【1000†the sun】 and 【1001†far†far.example】." in body(first)
    assert (
        body(second)
        == f"[2] Tides and the moon ({MOON})\n**viewing lines [600 - 601] of 604**\n\nL600: Line 297 of the moon.\nL601: "
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": SUN},
        {"id": SUN},
        {"id": 1000},
        {"id": "1000"},
        {"id": 1000.0, "cursor": 1},
        {"id": 0, "cursor": 1},
        {"id": 1000, "loc": 0, "num_lines": -1, "cursor": -1},
    ],
)
def test_link_is_opened_in_every_form(folder: Path, arguments: Mapping[str, Any]) -> None:
    results = run(executor(FolderBackend(folder)), (SEARCH, {"query": "moon"}), (OPEN, {"id": 0}), (OPEN, arguments))
    assert results[-1].action == {"type": "open_page", "url": SUN}


@pytest.mark.parametrize("arguments", [{}, {"id": 1}, {"id": 0}, {"cursor": 1}, {"url": MOON}, {"id": -1}])
def test_text_is_found_in_a_page(folder: Path, arguments: Mapping[str, Any]) -> None:
    calls: list[Call] = [(SEARCH, {"query": "moon"}), (OPEN, {"id": 0}), (FIND, {"pattern": "LINE 7 ", **arguments})]
    result = run(executor(FolderBackend(folder)), *calls)[-1]
    assert result.action == {"type": "find_in_page", "url": MOON, "pattern": "LINE 7"}
    assert body(result).startswith(
        f"[2] Matches of “LINE 7” in Tides and the moon ({MOON})\n**6 places**\n\n# Match at L20\nL20: Line 7 of"
    )


def test_later_owner_of_the_run_knows_the_displays(folder: Path) -> None:
    before = run(executor(FolderBackend(folder)), (SEARCH, {"query": "moon"}), (OPEN, {"id": 0}))
    later = run(
        executor(FolderBackend(folder)),
        (OPEN, {"id": 1000}),
        (OPEN, {"id": 0, "cursor": 0}),
        (FIND, {"pattern": "sun", "id": 1}),
        items=[{"type": "message"}, *map(closed, before)],
    )
    assert [result.action["url"] for result in later] == [SUN, MOON, MOON]
    assert [body(result)[:3] for result in later] == ["[2]", "[3]", "[4]"]


@pytest.mark.parametrize("filters", [{"allowed_domains": ["tides.example"]}, {"blocked_domains": ["elsewhere.example"]}])
def test_domains_hold_for_results_and_pages(folder: Path, filters: Mapping[str, Any]) -> None:
    tools = executor(FolderBackend(folder), {"filters": filters})
    allowed, refused = run(tools, (SEARCH, {"query": "tides"}), (OPEN, {"url": OTHER}))
    assert [one["url"] for one in allowed.action["sources"]] == [MOON, SUN]
    assert (refused.failed, refused.model_text) == (True, "The request does not allow this page.")


@pytest.mark.parametrize(
    ("call", "action", "message"),
    [
        ((SEARCH, "{"), {"type": "search", "query": ""}, "not valid JSON"),
        ((SEARCH, "[]"), {"type": "search", "query": ""}, "not a JSON object"),
        ((SEARCH, {"query": " "}), {"type": "search", "query": " ", "queries": [" "]}, "'query' must be a text"),
        ((SEARCH, {"query": 3}), {"type": "search", "query": ""}, "'query' must be a text"),
        ((OPEN, {}), {"type": "open_page", "url": ""}, "No page is open"),
        ((OPEN, {"id": 7}), {"type": "open_page", "url": ""}, "no link with the number 7"),
        ((OPEN, {"url": "https://a.example/"}), {"type": "open_page", "url": "https://a.example/"}, "no page with this"),
        ((OPEN, {"url": SUN, "line": 99}), {"type": "open_page", "url": SUN}, "no line 99: its last line is 0"),
        ((FIND, {"pattern": "a"}), {"type": "find_in_page", "url": "", "pattern": "a"}, "No page is open"),
        ((FIND, {}), {"type": "find_in_page", "url": "", "pattern": ""}, "'pattern' must be a text"),
    ],
)
def test_failure_is_shown_to_the_model(folder: Path, call: Call, action: Mapping[str, Any], message: str) -> None:
    (result,) = run(executor(FolderBackend(folder)), call)
    assert (result.failed, result.action) == (True, action)
    assert message in (result.model_text or "")


@pytest.mark.parametrize(
    ("backend", "message"), [(FailingBackend(), "HTTP status 500"), (FailingBackend(hangs=True), TOO_SLOW)]
)
def test_search_without_an_answer_fails(backend: FailingBackend, message: str, caplog: pytest.LogCaptureFixture) -> None:
    (result,) = run(executor(backend, timeout_s=0.05), (SEARCH, {"query": "tea"}))
    assert (result.failed, result.action["query"]) == (True, "tea")
    assert message in (result.model_text or "")
    # The operator reads of a refused key or a service that is away.
    assert [(record.levelname, message in record.getMessage()) for record in caplog.records] == [("WARNING", True)]


def test_two_calls_share_a_page_and_have_cursors_of_their_own(folder: Path) -> None:
    async def run_both() -> list[WebResult]:
        tools = executor(FolderBackend(folder))
        tools.offer([])
        calls = [tools.run(item((OPEN, {"url": SUN})), lambda _: None), tools.run(item((OPEN, {"url": SUN})), lambda _: None)]
        return list(await asyncio.gather(*calls))

    assert [body(result)[:3] for result in asyncio.run(run_both())] == ["[0]", "[1]"]


def test_offer_names_location_and_domains() -> None:
    tool = {
        "filters": {"allowed_domains": ["a.example"], "blocked_domains": ["b.a.example"]},
        "user_location": {"type": "approximate", "city": "Rome", "country": "IT"},
    }
    offer = executor(FailingBackend(), tool).offer([])
    assert [one["name"] for one in offer.functions] == [SEARCH, OPEN, FIND]
    description = offer.functions[0]["description"]
    assert description.endswith(
        "The user is near Rome, IT. Only pages of these domains are available: a.example. "
        "Pages of these domains are not available: b.a.example."
    )
    assert offer.opening(OPEN) == WebSearch(OPEN)
    assert offer.opening("other") is None
    assert offer.tool_choice({"type": "web_search_preview"}) == {"type": "function", "name": SEARCH}


@pytest.mark.parametrize("location", [None, {"type": "approximate", "country": "US"}, {"type": "approximate"}])
def test_offer_names_no_default_location(location: Any) -> None:
    offer = executor(FailingBackend(), {"user_location": location}).offer([])
    assert "user is near" not in offer.functions[0]["description"]


def test_sources_are_the_pages_of_the_displays(folder: Path) -> None:
    calls: list[Call] = [(SEARCH, {"query": "tides"}), (OPEN, {"url": MOON}), (FIND, {"pattern": "line"})]
    before = run(executor(FolderBackend(folder)), *calls)
    sources = executor(FolderBackend(folder)).offer([*map(closed, before)]).sources
    assert sources is not None
    moon, other = WebSource(MOON, "Tides and the moon"), WebSource(OTHER, "tides")
    shown = {number: [display.at_line(line) for line in (0, 4, 99)] for number, display in sources.displays.items()}
    assert shown[1] == shown[2] == [moon, moon, moon]
    assert {moon, other} <= {source for _, source in sources.displays[0].sources}
    assert sources.displays[0].at_line(0) == other


def test_failed_call_has_the_message_for_the_model() -> None:
    result = executor(FailingBackend()).failure(item((FIND, "{}")), "stopped")
    assert (result.failed, result.model_text, result.action["type"]) == (True, "stopped", "find_in_page")
