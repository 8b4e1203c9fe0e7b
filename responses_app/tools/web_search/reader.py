"""Page reader of a run: pages of the search back end or of the web, with a cache."""

from __future__ import annotations

import asyncio
import os

import orjson

from responses_app.extraction.errors import ExtractionError, ExtractorBusy
from responses_app.tools.file_text import extract_file_text
from responses_app.tools.web_search.backends.base import PageMissing, PageSource, SearchBackend
from responses_app.tools.web_search.pages.fetcher import FetchedPage, PageFetcher
from responses_app.tools.web_search.pages.page import Page, PageFailed
from responses_app.tools.web_search.pages.text_job import encode_job
from responses_app.workers.limits import Limits, WorkerError
from responses_app.workers.pool import Pool

PDF = "application/pdf"
LIMITS = Limits(cpu_s=10, wall_s=20.0, memory_bytes=512 << 20)
PROCESSES = min(max(os.cpu_count() or 1, 1), 2)

_pool = Pool("responses_app.tools.web_search.pages.text_job:handle", LIMITS, size=PROCESSES, per_owner=1, max_waiting=100)


class PageReader:
    """Reader of pages for `project`. Each page is read once; a page that failed is read again.

    A back end that has the pages itself, as a folder, is never left for the network.
    """

    def __init__(self, project: str, backend: SearchBackend, fetcher: PageFetcher) -> None:
        self._project, self._backend, self._fetcher = project, backend, fetcher
        self._pages: dict[str, asyncio.Task[Page]] = {}

    async def read(self, url: str) -> Page:
        """Return the page at `url`. Raises PageFailed."""
        if url not in self._pages:
            self._pages[url] = asyncio.create_task(self._read(url), name="read a page")
        task = self._pages[url]
        try:
            # Another call may wait for the same page.
            return await asyncio.shield(task)
        except Exception:
            self._pages.pop(url, None)
            raise

    async def close(self) -> None:
        """Stop reading."""
        tasks = [*self._pages.values()]
        self._pages = {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, url: str) -> Page:
        fetched_page = await (self._from_backend(url) if isinstance(self._backend, PageSource) else self._fetcher.fetch(url))
        return await read_text(
            self._project, fetched_page.url, fetched_page.media_type, fetched_page.charset, fetched_page.data
        )

    async def _from_backend(self, url: str) -> FetchedPage:
        if not self._fetcher.domains.allows(url):
            raise PageFailed("The request does not allow this page.")
        if not isinstance(self._backend, PageSource):
            raise PageFailed("The search back end has no pages.")
        try:
            media_type, data = await self._backend.read_page(url)
        except PageMissing:
            raise PageFailed("There is no page with this address.") from None
        return FetchedPage(url, media_type, "utf-8", data)


async def read_text(project: str, url: str, media_type: str, charset: str, data: bytes) -> Page:
    """Return the page with the bytes `data`. Raises PageFailed."""
    if media_type == PDF:
        data, media_type, charset = await _read_pdf(project, data), "text/plain", "utf-8"
    try:
        answer = orjson.loads(await _pool.run(project, encode_job(url, media_type, charset, data)))
    except WorkerError as error:
        raise PageFailed(f"The text of the page cannot be read ({type(error).__name__}).") from error
    return Page(url, answer["title"] or url, answer["lines"], answer["links"])


async def _read_pdf(project: str, data: bytes) -> bytes:
    try:
        return (await extract_file_text(project, data, "page.pdf")).text.encode()
    except (ExtractionError, ExtractorBusy, WorkerError) as error:
        raise PageFailed(f"The PDF cannot be read: {error}") from error
