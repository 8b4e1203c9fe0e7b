"""Text of files with and without a sandbox in the settings."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from responses_app.extraction.errors import ExtractionError, ExtractorBusy
from responses_app.extraction.extractor import ExtractedText
from responses_app.tools.file_text import MAX_SHORT_BYTES, extract_file_text
from tests.support.extraction import documents
from tests.support.sandbox.runner import runner

PAGE = b"<html><p>Oslo</p></html>"


@override_settings(RESPONSES_SANDBOX_URL="")
def test_file_is_read_with_limits_alone_where_no_sandbox_is_configured() -> None:
    assert asyncio.run(extract_file_text("tests", PAGE, "a.html")).text == "Oslo"


def test_file_is_read_in_the_sandbox_of_the_settings_only(tmp_path: Path) -> None:
    with runner(tmp_path) as started, override_settings(RESPONSES_SANDBOX_URL=started.url):
        assert asyncio.run(extract_file_text("tests", PAGE, "a.html")).text == "Oslo"
    with override_settings(RESPONSES_SANDBOX_URL=started.url), pytest.raises(ExtractorBusy, match="not available"):
        asyncio.run(extract_file_text("tests", PAGE, "a.html"))


@pytest.fixture
def no_process() -> Iterator[None]:
    """Configure a sandbox that nothing reaches: what needs a process is refused."""
    with override_settings(RESPONSES_SANDBOX_URL="http://127.0.0.1:9"):
        yield


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize(
    ("data", "text"),
    [("Übung\r\n".encode(), "Übung\n"), (codecs.BOM_UTF8 + b"Oslo", "Oslo"), (b"x" * MAX_SHORT_BYTES, "x" * MAX_SHORT_BYTES)],
    ids=["UTF-8", "byte order mark", "longest"],
)
def test_short_text_in_utf8_needs_no_process(data: bytes, text: str) -> None:
    assert asyncio.run(extract_file_text("tests", data, "a.txt")) == ExtractedText(text, "text", is_cut=False)


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PAGE, "a.txt"),
        (b"Oslo", "a.html"),
        ("Übung".encode("latin-1"), "a.txt"),
        (b"%PDF-1.4", "a.txt"),
        (documents.archive(readme=b"x"), "a.txt"),
        (b"x" * (MAX_SHORT_BYTES + 1), "a.txt"),
    ],
    ids=["HTML", "name of HTML", "other encoding", "PDF", "archive", "long"],
)
def test_other_file_is_given_to_a_process(data: bytes, name: str) -> None:
    with pytest.raises(ExtractorBusy):
        asyncio.run(extract_file_text("tests", data, name))


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("data", [b"\x01\x02\x03", b"{\\rtf1 Oslo}"], ids=["control characters", "RTF"])
def test_file_without_text_is_refused_without_a_process(data: bytes) -> None:
    with pytest.raises(ExtractionError) as refused:
        asyncio.run(extract_file_text("tests", data, "a.txt"))
    assert refused.value.code == "unsupported_file"
