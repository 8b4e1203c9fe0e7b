"""Checks of the services that server tools use: embeddings for file search, and the search service for web search."""

from __future__ import annotations

import asyncio
from typing import Final

from django.conf import settings

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults
from responses_app.tools.file_search import embedder
from responses_app.tools.web_search.backends.base import SearchContext, SearchFailed
from responses_app.tools.web_search.backends.services import FOLDER
from responses_app.tools.web_search.executor import open_backend

QUERY: Final = "open source"


def checks() -> list[tuple[str, Check]]:
    """Return the checks of these services."""
    return [("embeddings", check_embedder), ("web search", check_web_search)]


def check_embedder() -> CheckResults:
    """Have the embeddings server embed a text."""
    if not embedder.is_configured():
        yield SKIPPED, "RESPONSES_EMBEDDINGS_URL is not set: files are searched by words alone."
        return
    try:
        (vector,) = asyncio.run(embedder.embed(["verbatim doctor"]))
    except embedder.EmbeddingFailed as error:
        yield FAILED, f"{error} Files are not added to vector stores, and searched by words alone."
    else:
        yield OK, f"The embeddings server returns {len(vector):,} numbers for a text."


def check_web_search() -> CheckResults:
    """Search the web once; a service that is paid for each search counts it."""
    setting = settings.RESPONSES_WEB_SEARCH
    if not setting:
        yield SKIPPED, "RESPONSES_WEB_SEARCH is not set: requests with web_search are refused."
        return
    try:
        results = asyncio.run(open_backend(setting).search(QUERY, SearchContext()))
    except SearchFailed as error:
        yield FAILED, f"{error} The model is told so in each call of web_search."
        return
    # A folder of pages need not have these words.
    status = OK if results or setting["backend"] == FOLDER else WARNING
    yield status, f"The back end {setting['backend']} of the web search found {len(results)} pages for {QUERY!r}."
