"""Web search tool of a run: searches, opened pages, and texts found in pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from responses_app.observability.records import current_response
from responses_app.protocol.deltas import Delta, SearchStarted, WebResult, WebSearch
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import Json
from responses_app.tools.base_executor import ServerToolExecutor
from responses_app.tools.declaration import ToolCallContext
from responses_app.tools.limits import ToolLimits
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.web_search import call_arguments as read
from responses_app.tools.web_search.backends.apis import APIS
from responses_app.tools.web_search.backends.base import SearchBackend, SearchContext, SearchFailed, UserLocation
from responses_app.tools.web_search.backends.folder import FolderBackend
from responses_app.tools.web_search.backends.http import HttpSearchBackend
from responses_app.tools.web_search.backends.services import DEFAULT_URLS, FOLDER, folder_of
from responses_app.tools.web_search.display import LINKS_PER_DISPLAY, BrowsingDisplay, show_matches, show_page, show_results
from responses_app.tools.web_search.domains import DomainFilter
from responses_app.tools.web_search.functions import FIND_IN_PAGE, FUNCTIONS, OPEN_PAGE, TYPES
from responses_app.tools.web_search.history import BrowsingHistory, LinkMissing
from responses_app.tools.web_search.pages.fetcher import PageFetcher
from responses_app.tools.web_search.pages.page import Page, PageFailed
from responses_app.tools.web_search.reader import PageReader

logger = logging.getLogger("responses.tools")

# By `search_context_size`: results of a search, and lines of a page.
_SIZES: Mapping[str, tuple[int, int]] = {"low": (5, 50), "medium": (8, 100), "high": (15, 200)}
_DEFAULT_SIZE = "medium"
_PLACES = ("city", "region", "country")


@dataclass(frozen=True, slots=True)
class WebSearchOptions:
    """Options of the tool: conditions of searches, and lines of a page in a display."""

    context: SearchContext
    lines: int

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> WebSearchOptions:
        """Read the options of a declared tool."""
        filters, place = tool.get("filters") or {}, tool.get("user_location") or {}
        results, lines = _SIZES.get(str(tool.get("search_context_size")), _SIZES[_DEFAULT_SIZE])
        domains = DomainFilter.of(filters.get("allowed_domains"), filters.get("blocked_domains"))
        location = UserLocation(place.get("city"), place.get("region"), place.get("country"), place.get("timezone"))
        return cls(SearchContext(results, domains, location), lines)

    def describe(self) -> str:
        """Return sentences for the model about the location of the user and the domains; empty without both."""
        location, domains = self.context.location, self.context.domains
        places = [getattr(location, name) for name in _PLACES if location is not None and getattr(location, name)]
        # A country alone is the default of the API, which is no information about the user.
        sentences = [f"The user is near {', '.join(places)}."] if len(places) > 1 or (location and location.city) else []
        if domains.allowed:
            sentences.append(f"Only pages of these domains are available: {', '.join(domains.allowed[:20])}.")
        if domains.blocked:
            sentences.append(f"Pages of these domains are not available: {', '.join(domains.blocked[:20])}.")
        return " ".join(sentences)


MAX_RESULTS = 20
TOO_SLOW = "The web does not answer in time."


class WebSearchExecutor(ServerToolExecutor):
    """Web search tool, a `ToolExecutor`. A call takes at most `timeout_s` seconds."""

    call_type = "web_search_call"
    repeatable = True

    def __init__(self, options: WebSearchOptions, backend: SearchBackend, reader: PageReader, timeout_s: float) -> None:
        self._options, self._backend, self._reader, self._timeout_s = options, backend, reader, timeout_s
        self._history = BrowsingHistory()

    async def prepare(self, items: Sequence[Json]) -> None:
        """Do nothing: the offer needs nothing from the database."""
        del items

    def offer(self, items: Sequence[Json]) -> ServerToolOffer:
        """Return the offer of the three functions. The displays of `items` are those that the model can refer to."""
        self._history = BrowsingHistory(items)
        return ServerToolOffer(TYPES, FUNCTIONS, WebSearch, self._options.describe(), self._history.sources())

    async def run(self, call: Json, report: Callable[[Delta], None]) -> WebResult:
        """Search, open a page, or find a text in a page."""
        report(SearchStarted())
        cursor, action = self._history.reserve(), _unknown_action(call)
        try:
            async with asyncio.timeout(self._timeout_s):
                arguments = parse_arguments(call["arguments"])
                action = _written_action(action, arguments)
                result = await self._run(str(call["function"]), arguments, cursor)
        except TimeoutError:
            logger.warning("%s: web search: %s", current_response.get(), TOO_SLOW)
            return WebResult(action, failed=True, model_text=TOO_SLOW)
        except (InvalidArguments, LinkMissing, PageFailed, SearchFailed) as error:
            if isinstance(error, SearchFailed):
                logger.warning("%s: web search: %s", current_response.get(), error)
            return WebResult(action, failed=True, model_text=str(error))
        self._history.add(result.model_text or "")
        return result

    def failure(self, call: Json, message: str) -> WebResult:
        """Return the end of a call that failed with `message`."""
        return WebResult(_unknown_action(call), failed=True, model_text=message)

    async def close(self) -> None:
        """Stop reading pages."""
        await self._reader.close()

    async def _run(self, function: str, arguments: Mapping[str, Any], cursor: int) -> WebResult:
        if function == OPEN_PAGE:
            return await self._open(arguments, cursor)
        if function == FIND_IN_PAGE:
            return await self._find(arguments, cursor)
        return await self._search(arguments, cursor)

    async def _search(self, arguments: Mapping[str, Any], cursor: int) -> WebResult:
        query, context = read.query(arguments), self._options.context
        requested_results = read.integer(arguments, "topn")
        if requested_results:
            context = replace(context, max_results=min(max(requested_results, 1), MAX_RESULTS))
        found_pages = await self._backend.search(query, context)
        action = {
            "type": "search",
            "query": query,
            "queries": [query],
            "sources": [{"type": "url", "url": one.url} for one in found_pages],
        }
        results = [{"url": one.url, "title": one.title, "snippet": one.snippet} for one in found_pages]
        return WebResult(action, results=results, model_text=show_results(cursor, query, found_pages))

    async def _open(self, arguments: Mapping[str, Any], cursor: int) -> WebResult:
        page = await self._reader.read(await self._url_to_open(arguments))
        start = max(read.integer(arguments, "line", "loc") or 0, 0)
        if start and start >= len(page.lines):
            raise LinkMissing(f"The page has no line {start}: its last line is {len(page.lines) - 1}.")
        requested_lines = read.integer(arguments, "num_lines") or 0
        count = min(requested_lines, 2 * self._options.lines) if requested_lines > 0 else self._options.lines
        return WebResult({"type": "open_page", "url": page.url}, model_text=show_page(cursor, page, start, count))

    async def _find(self, arguments: Mapping[str, Any], cursor: int) -> WebResult:
        pattern = read.pattern(arguments)
        page = await self._page_to_search(arguments)
        action = {"type": "find_in_page", "url": page.url, "pattern": pattern}
        return WebResult(action, model_text=show_matches(cursor, page, pattern))

    async def _url_to_open(self, arguments: Mapping[str, Any]) -> str:
        """Return the address of `url`, of the link `id`, or of a page that is open. Raises LinkMissing and PageFailed."""
        url, number, cursor = read.url(arguments), read.integer(arguments, "id"), read.cursor(arguments)
        if url is not None:
            return url
        if number is None or number < 0:
            return self._page_url(self._history.page(cursor))
        return await self._link_url(*self._history.link(number, cursor))

    async def _page_to_search(self, arguments: Mapping[str, Any]) -> Page:
        """Return the page of `url`, of the display or link `id`, or the newest page. Raises LinkMissing and PageFailed."""
        url, number, cursor = read.url(arguments), read.integer(arguments, "id"), read.cursor(arguments)
        if url is None and number is not None and number >= 0 and not self._history.has_page(number):
            url = await self._link_url(*self._history.link(number, cursor))
        elif url is None:
            url = self._page_url(self._history.page(cursor if number is None or number < 0 else number))
        return await self._reader.read(url)

    async def _link_url(self, display: BrowsingDisplay, index: int) -> str:
        if display.url is None:
            link_url = next((one.url for number, one in display.results.items() if number % LINKS_PER_DISPLAY == index), None)
        else:
            links = (await self._reader.read(display.url)).links
            link_url = links[index] if index < len(links) else None
        if link_url is None:
            raise LinkMissing(f"The display {display.cursor} has no link with the index {index}.")
        return link_url

    def _page_url(self, display: BrowsingDisplay) -> str:
        if display.url is None:
            raise LinkMissing(f"The display {display.cursor} has search results. Open one of the results first.")
        return display.url


def _unknown_action(call: Json) -> Json:
    """Return the action of a call that failed before its arguments were read."""
    function = call.get("function")
    if function == OPEN_PAGE:
        return {"type": "open_page", "url": ""}
    if function == FIND_IN_PAGE:
        return {"type": "find_in_page", "url": "", "pattern": ""}
    return {"type": "search", "query": ""}


def _written_action(action: Json, arguments: Mapping[str, Any]) -> Json:
    """Return the action with the texts that the model has written."""
    texts = {key: arguments[key] for key in action if key != "type" and isinstance(arguments.get(key), str)}
    return {**action, **texts, **({"queries": [texts["query"]]} if "query" in texts else {})}


def open_web_search(context: ToolCallContext) -> WebSearchExecutor | None:
    """Return the executor of the tool for a request; None without the setting."""
    setting = settings.RESPONSES_WEB_SEARCH
    if not setting:
        return None
    options, backend = WebSearchOptions.of(context.declared), open_backend(setting)
    fetcher = PageFetcher(frozenset(setting.get("private_hosts", ())), options.context.domains)
    reader = PageReader(context.project, backend, fetcher)
    return WebSearchExecutor(options, backend, reader, ToolLimits.from_settings().call_timeout_s)


def open_backend(setting: Mapping[str, object]) -> SearchBackend:
    """Create the back end of a checked setting: `backend`, and `url` and `key` where the back end needs these."""
    name, url, key = str(setting["backend"]), str(setting.get("url") or ""), str(setting.get("key") or "")
    if name == FOLDER:
        return FolderBackend(folder_of(url))
    return HttpSearchBackend(APIS[name], url or DEFAULT_URLS[name] or "", key)
