"""Text of pages in worker processes, with limits on time and memory."""

from __future__ import annotations

import os

import orjson

from responses_app.extraction.errors import ExtractionError, ExtractorBusy
from responses_app.tools.file_text import extract_file_text
from responses_app.tools.web_search.pages.page import Page, PageFailed
from responses_app.tools.web_search.pages.text_job import encode_job
from responses_app.workers.limits import Limits, WorkerError
from responses_app.workers.pool import Pool

PDF = "application/pdf"
LIMITS = Limits(cpu_s=10, wall_s=20.0, memory_bytes=512 << 20)
PROCESSES = min(max(os.cpu_count() or 1, 1), 2)

_pool = Pool("responses_app.tools.web_search.pages.text_job:handle", LIMITS, size=PROCESSES, per_owner=1, max_waiting=100)


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
