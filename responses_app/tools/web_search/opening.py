"""Opening of the web search tool of a run: back end, page reader and executor from the setting and the declared tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.tools.limits import ToolLimits
from responses_app.tools.web_search.backends.registry import open_backend
from responses_app.tools.web_search.executor import WebSearchExecutor
from responses_app.tools.web_search.options import WebSearchOptions
from responses_app.tools.web_search.pages.fetcher import PageFetcher
from responses_app.tools.web_search.reader import PageReader


def open_web_search(tool: Mapping[str, Any], setting: Mapping[str, Any], project: str, limits: ToolLimits) -> WebSearchExecutor:
    """Return the executor of the declared `tool`. `setting` is RESPONSES_WEB_SEARCH."""
    options, backend = WebSearchOptions.of(tool), open_backend(setting)
    fetcher = PageFetcher(frozenset(setting.get("private_hosts", ())), options.context.domains)
    return WebSearchExecutor(options, backend, PageReader(project, backend, fetcher), limits.call_timeout_s)
