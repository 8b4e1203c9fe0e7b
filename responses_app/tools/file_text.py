"""Text of files: read in the sandbox where a sandbox works, else in worker processes with limits; short plain texts at once."""

from __future__ import annotations

import asyncio
from typing import Final

from responses_app.extraction.extractor import ExtractedText, extract_text, read_utf8
from responses_app.extraction.limits import MIB
from responses_app.tools import sandbox_access

# Bytes of a plain text that is read without a process, whose start takes longer.
MAX_SHORT_BYTES: Final = MIB


async def extract_file_text(project: str, data: bytes, name: str, *, queue: str = "") -> ExtractedText:
    """Extract the text of a file. Files of `project` in the same `queue` take turns. Raises ExtractionError, ExtractorBusy.

    A sandbox that works and is not reachable at the moment raises ExtractorBusy: no file that needs a parser is then read outside.
    """
    if len(data) <= MAX_SHORT_BYTES and (text := await asyncio.to_thread(read_utf8, data, name)) is not None:
        return text
    # The first call in a process makes a trial run of the sandbox.
    if await asyncio.to_thread(sandbox_access.isolation_problem) is not None:
        return await extract_text(project, data, name, queue=queue)
    sandbox = sandbox_access.reader_client()
    try:
        return await extract_text(project, data, name, sandbox, queue=queue)
    finally:
        await sandbox.close()
