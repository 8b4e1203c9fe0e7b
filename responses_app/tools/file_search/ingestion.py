"""Ingestion of files into vector stores, in the background of every web process: text, chunks, embeddings, storage."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from django.conf import settings
from django.db import DatabaseError

from responses_app.extraction.errors import ExtractionError, ExtractorBusy, ExtractorUnavailable
from responses_app.extraction.limits import MAX_FILE_BYTES
from responses_app.models import File, VectorStoreFile
from responses_app.sandbox.base import SandboxEnded, SandboxUnavailable
from responses_app.store.db import call_in_thread
from responses_app.store.files import storage
from responses_app.store.vector_stores import jobs
from responses_app.store.vector_stores.chunker import TextChunk, chunk_text
from responses_app.store.vector_stores.filters import storable_text
from responses_app.store.vector_stores.jobs import NewChunk
from responses_app.tools.file_search import embedder
from responses_app.tools.file_text import extract_file_text
from responses_app.utils.shares import ProjectShares

logger = logging.getLogger("responses.files")

# Pause between two looks for files that are due, unless this process has added files.
POLL_S = 1.0
NO_TEXT = "The file contains no text."
MISSING_BYTES = "The bytes of the file are missing in the storage."
INVALID_FILE = "invalid_file"
# Ingestions do not take the turns of files in requests of the same project.
QUEUE = "ingestion"

# Returns the text of a file. Raises IngestionFailed for a file without readable text.
TextReader: TypeAlias = Callable[[File], Awaitable[str]]
Start: TypeAlias = Callable[[VectorStoreFile], Coroutine[Any, Any, None]]


class IngestionFailed(Exception):
    """The file cannot be ingested, and another attempt would fail too. `code` is the `last_error.code` of the API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass
class Outage:
    """Pause of all ingestions of a process while the embeddings server or the storage of files is away: each file needs them."""

    ends_at: float = 0.0

    @property
    def is_over(self) -> bool:
        """Return whether ingestions may start."""
        return time.monotonic() >= self.ends_at

    def begin(self) -> None:
        """Start no ingestion for OUTAGE_PAUSE_S seconds."""
        self.ends_at = time.monotonic() + jobs.OUTAGE_PAUSE_S


_wake_events: set[asyncio.Event] = set()


def wake() -> None:
    """Let the workers of this process look for files now."""
    for event in _wake_events:
        event.set()


async def ingest_files(read_text: TextReader | None = None, poll_s: float = POLL_S) -> None:
    """Ingest files that are due until cancelled, RESPONSES_INGESTION_PARALLEL files at the same time.

    The last place is for a project without a file in work in this process, so that slow files of one project do not stop others.
    """
    event, slots, outage = asyncio.Event(), ProjectShares(settings.RESPONSES_INGESTION_PARALLEL), Outage()
    start = partial(_guarded_ingestion, read_text=read_text or read_file_text, outage=outage)
    _wake_events.add(event)
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(poll_s):
                        await event.wait()
                event.clear()
                if outage.is_over:
                    await _start_due(group, slots, start, event)
    finally:
        _wake_events.discard(event)


async def _start_due(group: asyncio.TaskGroup, slots: ProjectShares, start: Start, ended: asyncio.Event) -> None:
    """Claim files and start their ingestion while there are free slots and due files. The end of an ingestion sets `ended`."""
    while slots.has_free_place:
        try:
            job = await call_in_thread(jobs.claim_next, slots.full_projects())
        except Exception as error:
            # The next look comes after the pause.
            logger.warning("files to ingest cannot be read from the database: %s", type(error).__name__)
            return
        if job is None:
            return
        project = job.store.project
        slots.take(project)
        task = group.create_task(start(job), name=f"job {job.pk}")
        task.add_done_callback(partial(_end_ingestion, slots, project, ended))


def _end_ingestion(slots: ProjectShares, project: str, ended: asyncio.Event, _task: asyncio.Task[None]) -> None:
    slots.release(project)
    ended.set()


async def _guarded_ingestion(job: VectorStoreFile, read_text: TextReader, outage: Outage) -> None:
    """Log an exception, which would end all ingestions of the process. The lease ends, and a worker tries again."""
    try:
        await _ingest(job, read_text, outage)
    except Exception:
        logger.exception("ingestion")


async def _ingest(job: VectorStoreFile, read_text: TextReader, outage: Outage) -> None:
    """Ingest a claimed file under a lease. A cancellation returns the file to the queue; a lost lease ends the work."""
    work = asyncio.create_task(ingest(job, read_text, outage), name=f"ingest {job.pk}")
    try:
        while not (await asyncio.wait({work}, timeout=jobs.RENEW_EVERY_S))[0]:
            if not await _renew(job):
                logger.info("%s: removed or cancelled while it was ingested", job.file.uid)
                await _cancel(work)
                return
    except asyncio.CancelledError:
        await _cancel(work)
        await asyncio.shield(call_in_thread(jobs.release, job))
        raise


async def _renew(job: VectorStoreFile) -> bool:
    """Renew the lease of `job`. False if the claim is lost. Without the database the lease may end, and the claim with it."""
    try:
        return await call_in_thread(jobs.renew, job)
    except DatabaseError as error:
        logger.warning("%s: the lease was not renewed: %s", job.file.uid, type(error).__name__)
        return True


async def _cancel(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.wait({work})


async def ingest(job: VectorStoreFile, read_text: TextReader, outage: Outage) -> None:
    """Ingest the claimed file `job` and store the chunks, or the failure."""
    try:
        await call_in_thread(jobs.complete, job, await _chunks(job, read_text), settings.RESPONSES_EMBEDDINGS_MODEL)
    except IngestionFailed as error:
        logger.info("%s: %s: %s", job.file.uid, error.code, error.message)
        await call_in_thread(jobs.fail, job, error.code, error.message)
    except storage.StorageUnavailable as error:
        logger.error("%s: the storage of files: %s", job.file.uid, error)
        outage.begin()
        await call_in_thread(jobs.wait_for_outage, job, error.refusal)
    except (embedder.EmbeddingFailed, ExtractorUnavailable) as error:
        if _is_outage(error):
            logger.warning("%s: the ingestion waits: %s", job.file.uid, error)
            if isinstance(error, embedder.EmbeddingFailed):
                outage.begin()
            await call_in_thread(jobs.wait_for_outage, job, str(error))
            return
        logger.warning("%s: attempt %d of the ingestion: %s", job.file.uid, job.attempts, error)
        await call_in_thread(jobs.retry, job, str(error))
    except ExtractorBusy:
        await call_in_thread(jobs.release, job, jobs.BUSY_PAUSE_S)
    except Exception as error:
        logger.exception("%s: attempt %d of the ingestion", job.file.uid, job.attempts)
        await call_in_thread(jobs.retry, job, f"The ingestion failed: {type(error).__name__}.")


def _is_outage(error: Exception) -> bool:
    """Return whether the failure is none of the file. A file may end the runner of the sandbox that reads it."""
    if isinstance(error, embedder.EmbeddingFailed):
        return error.is_outage
    return isinstance(error.__cause__, SandboxUnavailable) and not isinstance(error.__cause__, SandboxEnded)


async def read_file_text(file: File) -> str:
    """Return the text of a file, read in the sandbox or with limits. Raises IngestionFailed, ExtractorBusy."""
    try:
        data = await storage.read_async(file.storage_name, MAX_FILE_BYTES + 1)
        return (await extract_file_text(file.project, data, file.filename, queue=QUEUE)).text
    except FileNotFoundError as error:
        raise IngestionFailed(INVALID_FILE, MISSING_BYTES) from error
    except ExtractionError as error:
        raise IngestionFailed(error.code, str(error)) from error


async def _chunks(job: VectorStoreFile, read_text: TextReader) -> list[NewChunk]:
    """Return the chunks of a file. Raises IngestionFailed, EmbeddingFailed."""
    text = storable_text(await read_text(job.file))
    chunks: list[TextChunk] = await asyncio.to_thread(chunk_text, text, job.chunk_tokens, job.overlap_tokens)
    if not chunks:
        raise IngestionFailed(INVALID_FILE, NO_TEXT)
    if not embedder.is_configured():
        return [NewChunk(chunk) for chunk in chunks]
    vectors = await embedder.embed([chunk.text for chunk in chunks])
    return [NewChunk(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
