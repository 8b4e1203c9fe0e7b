"""Ingestion of files: projects take turns, slow files of a project do not stop others, and a wait is no attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar
from unittest.mock import patch

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from responses_app.extraction.errors import ExtractorBusy, ExtractorUnavailable
from responses_app.models import File, VectorStoreFile
from responses_app.sandbox.base import SandboxEnded, SandboxUnavailable
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.vector_stores import jobs
from responses_app.tools.file_search import ingestion
from responses_app.tools.file_search.embedder import EmbeddingFailed
from responses_app.tools.file_search.ingestion import Outage, TextReader, ingest, ingest_files
from tests.support.store.vector_stores import add_file, make_store
from tests.support.waiting import eventually

Result = TypeVar("Result")


def run_ingestion(read_text: TextReader, check: Callable[[], Awaitable[None]]) -> None:
    """Ingest files until `check` has ended."""

    async def main() -> None:
        ingestion = asyncio.create_task(ingest_files(read_text, poll_s=0.02))
        try:
            await check()
        finally:
            ingestion.cancel()
            with suppress(asyncio.CancelledError):
                await ingestion

    asyncio.run(main())


async def in_thread(function: Callable[[], Result]) -> Result:
    """Call a function that uses the database, and close the connection."""

    def work() -> Result:
        try:
            return function()
        finally:
            connection.close()

    return await asyncio.to_thread(work)


async def are_completed(*rows: VectorStoreFile) -> bool:
    statuses = VectorStoreFile.objects.filter(pk__in=[row.pk for row in rows]).values_list("status", flat=True)
    return set(await in_thread(lambda: list(statuses))) == {"completed"}


@pytest.mark.django_db(transaction=True)
@override_settings(RESPONSES_INGESTION_PARALLEL=2)
def test_slow_files_of_a_project_do_not_stop_others() -> None:
    slow = [add_file(make_store("busy")) for _ in range(3)]
    quick = [add_file(make_store("quiet"))]
    started, gate = [], asyncio.Event()

    async def read_text(file: File) -> str:
        started.append(file.project)
        if file.project == "busy":
            await gate.wait()
        return "Read."

    async def check() -> None:
        await eventually(lambda: are_completed(*quick))
        quick.append(await in_thread(lambda: add_file(make_store("quiet"))))
        await eventually(lambda: are_completed(*quick))
        assert started.count("busy") == 1
        gate.set()
        await eventually(lambda: are_completed(*slow))

    run_ingestion(read_text, check)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("error", "attempts"), [(ExtractorBusy("other files are read"), 0), (ExtractorUnavailable("no sandbox"), jobs.MAX_ATTEMPTS)]
)
def test_wait_for_other_files_is_no_attempt(error: ExtractorBusy, attempts: int, caplog: pytest.LogCaptureFixture) -> None:
    row = add_file(make_store())

    async def read_text(_file: File) -> str:
        raise error

    for _ in range(jobs.MAX_ATTEMPTS):
        VectorStoreFile.objects.filter(pk=row.pk).update(due_at=row.created_at)
        job = jobs.claim_next()
        assert job is not None
        asyncio.run(ingest(job, read_text, Outage()))
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("failed" if attempts else "in_progress", attempts)
    assert [record.getMessage().endswith("no sandbox") for record in caplog.records if record.levelname == "WARNING"] == [
        True
    ] * attempts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "error",
    [StorageUnavailable("the disk is unmounted"), EmbeddingFailed("The embeddings server does not answer.", is_outage=True)],
    ids=["storage", "embedder"],
)
def test_outage_is_no_attempt_and_the_file_says_why_it_waits(error: Exception) -> None:
    rows = [add_file(make_store()) for _ in range(3)]
    reads, is_away, outage = [], True, Outage()

    async def read_text(file: File) -> str:
        reads.append(file.uid)
        if is_away:
            raise error
        return "Read."

    def states() -> list[tuple[str, int, str]]:
        return list(VectorStoreFile.objects.order_by("pk").values_list("status", "attempts", "error_message"))

    async def check() -> None:
        nonlocal is_away
        await eventually(lambda: reads)
        message = error.refusal if isinstance(error, StorageUnavailable) else str(error)

        async def waits() -> bool:
            return (await in_thread(states)).count(("in_progress", 0, message)) == 1

        await eventually(waits)
        assert len(reads) == 1, "no other file is tried in the pause"
        is_away = False
        await in_thread(lambda: VectorStoreFile.objects.update(due_at=rows[0].created_at))
        outage.ends_at = 0.0
        await eventually(lambda: are_completed(*rows))
        assert {message for *_, message in await in_thread(states)} == {""}

    with (
        override_settings(RESPONSES_INGESTION_PARALLEL=1),
        patch.object(ingestion, "Outage", return_value=outage),
        patch.object(jobs, "OUTAGE_PAUSE_S", 1_000_000),
    ):
        run_ingestion(read_text, check)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("cause", "age", "attempts"),
    [
        (SandboxUnavailable("not reached"), timedelta(0), 0),
        (SandboxUnavailable("not reached"), jobs.MAX_OUTAGE, 1),
        (SandboxEnded("by the file"), timedelta(0), 1),
    ],
)
def test_sandbox_that_is_away_is_no_attempt_for_an_hour(cause: Exception, age: timedelta, attempts: int) -> None:
    row = add_file(make_store())
    VectorStoreFile.objects.update(created_at=timezone.now() - age)
    outage = Outage()

    async def read_text(_file: File) -> str:
        raise ExtractorUnavailable("The sandbox is away.") from cause

    job = jobs.claim_next()
    assert job is not None
    asyncio.run(ingest(job, read_text, outage))
    row.refresh_from_db()
    assert (row.status, row.attempts, row.error_message) == ("in_progress", attempts, "The sandbox is away.")
    assert outage.is_over, "plain texts need no sandbox"
