"""Opening of the web search for a request: back end, page reader and executor from RESPONSES_WEB_SEARCH and the declared tool."""

from __future__ import annotations

from django.conf import settings

from responses_app.tools.declaration import ToolCallContext
from responses_app.tools.limits import ToolLimits
from responses_app.tools.web_search.backends.registry import open_backend
from responses_app.tools.web_search.executor import WebSearchExecutor
from responses_app.tools.web_search.options import WebSearchOptions
from responses_app.tools.web_search.pages.fetcher import PageFetcher
from responses_app.tools.web_search.reader import PageReader


def open_web_search(context: ToolCallContext) -> WebSearchExecutor | None:
    """Return the executor of the tool for a request; None without the setting."""
    setting = settings.RESPONSES_WEB_SEARCH
    if not setting:
        return None
    options, backend = WebSearchOptions.of(context.declared), open_backend(setting)
    fetcher = PageFetcher(frozenset(setting.get("private_hosts", ())), options.context.domains)
    reader = PageReader(context.project, backend, fetcher)
    return WebSearchExecutor(options, backend, reader, ToolLimits.from_settings().call_timeout_s)
