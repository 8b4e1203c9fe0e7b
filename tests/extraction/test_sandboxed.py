"""Text of files, read in the sandbox."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from responses_app.extraction import extractor
from responses_app.extraction.errors import ExtractionError, ExtractorBusy
from responses_app.extraction.extractor import ExtractedText, extract_text
from responses_app.sandbox import bubblewrap
from responses_app.sandbox.client import SandboxClient
from tests.support.extraction import documents
from tests.support.sandbox.runner import Runner, runner
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


def extract(sandbox: Runner, data: bytes, name: str) -> ExtractedText:
    async def work(client: SandboxClient) -> ExtractedText:
        return await extract_text("tests", data, name, client)

    return sandbox.use(work)


@pytest.mark.parametrize(
    ("data", "name", "kind", "text"),
    [
        pytest.param(documents.pdf("Oslo", "Bergen"), "a.pdf", "pdf", "Oslo\n\nBergen", id="pdf"),
        pytest.param(documents.word(), "a.docx", "docx", "Cities\nOslo\tNorway\nThe end.\n", id="docx"),
        pytest.param(documents.workbook(), "a.xlsx", "xlsx", "# Cities\nOslo\t700000\nBergen\t\t1.5\n\n", id="xlsx"),
        pytest.param(b"<html><p>Oslo</p></html>", "../x.html", "html", "Oslo", id="html with a path as its name"),
        pytest.param("Übung\ud800".encode(errors="replace"), "\ud800", "text", "Übung?", id="text with a broken name"),
    ],
)
def test_sandbox_reads_the_same_text_as_a_worker_process(sandbox: Runner, data: bytes, name: str, kind: str, text: str) -> None:
    outside = asyncio.run(extract_text("tests", data, name))
    assert extract(sandbox, data, name) == outside == ExtractedText(text, kind, is_cut=False)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"%PDF-1.4 and no more", "invalid_file", id="broken pdf"),
        pytest.param(documents.archive(readme=b"x"), "unsupported_file", id="zip"),
        pytest.param(bytes(range(256)) * 10, "unsupported_file", id="binary"),
    ],
)
def test_sandbox_refuses_a_file_without_readable_text(sandbox: Runner, data: bytes, code: str) -> None:
    with pytest.raises(ExtractionError) as refused:
        extract(sandbox, data, "a.txt")
    assert refused.value.code == code, refused.value


def test_sandbox_refuses_a_zip_bomb(sandbox: Runner) -> None:
    with pytest.raises(ExtractionError) as refused:
        extract(sandbox, documents.zip_bomb(), "a.txt")
    assert refused.value.code == "invalid_file", refused.value


def test_files_of_a_project_take_turns_in_the_sandbox(sandbox: Runner) -> None:
    async def work(client: SandboxClient) -> list[ExtractedText]:
        return await asyncio.gather(*(extract_text("tests", b"%d" % number, "a.txt", client) for number in range(6)))

    assert [extracted.text for extracted in sandbox.use(work)] == ["0", "1", "2", "3", "4", "5"]


def test_no_file_is_read_outside_of_a_sandbox_that_has_ended(tmp_path: Path) -> None:
    with runner(tmp_path) as ended:
        pass
    with pytest.raises(ExtractorBusy, match="not available"):
        extract(ended, b"Oslo", "a.txt")


@pytest.mark.parametrize("kills", [1, 2])
def test_file_is_read_again_after_its_process_was_killed(sandbox: Runner, kills: int) -> None:
    data = documents.pdf(*["Oslo " * 50] * 500)

    async def work(client: SandboxClient) -> ExtractedText:
        reading = asyncio.create_task(extract_text("tests", data, "a.pdf", client))
        killed = set[int]()

        async def is_killed() -> bool:
            for process in psutil.Process(sandbox.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if (
                        process.pid not in killed
                        and process.name() != "bwrap"
                        and f"{bubblewrap.INSIDE}/once.py" in process.cmdline()
                    ):
                        killed.add(process.pid)
                        process.kill()
            return len(killed) == kills

        await eventually(is_killed)
        return await reading

    if kills < extractor.ATTEMPTS:
        assert sandbox.use(work).text.startswith("Oslo Oslo")
    else:
        with pytest.raises(ExtractionError, match="cannot be read"):
            sandbox.use(work)


def test_files_of_other_projects_are_read_while_a_slow_one_is(sandbox: Runner) -> None:
    async def work(client: SandboxClient) -> ExtractedText:
        async with extractor._turn("ingestion/busy"):
            waiting = asyncio.create_task(extract_text("busy", b"Oslo", "a.txt", client, queue="ingestion"))
            extracted = await extract_text("quiet", b"Rome", "a.txt", client, queue="ingestion")
            assert not waiting.done()
        await waiting
        return extracted

    assert sandbox.use(work).text == "Rome"
