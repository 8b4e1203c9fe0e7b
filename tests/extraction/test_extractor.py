"""Text of files from real worker processes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from responses_app.extraction import limits
from responses_app.extraction.errors import ExtractionError
from responses_app.extraction.extractor import ExtractedText, extract_text
from tests.support.extraction import documents

CYRILLIC = "Ослo и Берген: города Норвегии, расположенные у моря. " * 20
HTML = (
    "<html><head><title>Cities</title><script>var x = 1</script><style>p {}</style></head>"
    "<body><h1>Oslo &amp; Bergen</h1><p>By <b>the</b> sea</p><ul><li>one<li>two</ul></body></html>"
)
# Each entity is ten times the one before: ten gigabytes in the end.
ENTITIES = "".join(f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 11))
LAUGHS = (
    f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY e0 "ha">{ENTITIES}]>'
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    "<w:body><w:p><w:r><w:t>&e10;</w:t></w:r></w:p></w:body></w:document>"
)
LOCAL = LAUGHS.replace('"ha"', 'SYSTEM "file:///etc/hostname"').replace("&e10;", "&e0;")


def extract(data: bytes, name: str = "a.txt") -> ExtractedText:
    return asyncio.run(extract_text("tests", data, name))


@pytest.mark.parametrize(
    ("data", "name", "kind", "text"),
    [
        pytest.param(documents.pdf("Oslo", "Bergen"), "a.pdf", "pdf", "Oslo\n\nBergen", id="pdf"),
        pytest.param(b"\n\n" + documents.pdf("Oslo"), "a.bin", "pdf", "Oslo", id="pdf behind other bytes"),
        pytest.param(documents.word(), "a.docx", "docx", "Cities\nOslo\tNorway\nThe end.\n", id="docx"),
        pytest.param(documents.workbook(), "a.xlsx", "xlsx", "# Cities\nOslo\t700000\nBergen\t\t1.5\n\n", id="xlsx"),
        pytest.param(
            documents.presentation(), "a", "pptx", "# Slide 1\nCities\nOslo and Bergen\nNotes: Speak slowly.\n\n", id="pptx"
        ),
        pytest.param(HTML.encode(), "a.html", "html", "Cities\n\n# Oslo & Bergen\n\nBy the sea\n\n* one\n* two", id="html"),
        pytest.param(b"name,size\r\nOslo,1\r\n", "a.csv", "text", "name,size\nOslo,1\n", id="csv"),
        pytest.param("Übung".encode(), "a.txt", "text", "Übung", id="utf-8"),
        pytest.param("Übung".encode("utf-16"), "a.txt", "text", "Übung", id="utf-16"),
        pytest.param("\ufeffÜbung".encode(), "a.txt", "text", "Übung", id="byte order mark"),
        pytest.param(CYRILLIC.encode("cp1251"), "a.txt", "text", CYRILLIC, id="cp1251"),
        pytest.param(b'{"a": 1}', "a.json", "text", '{"a": 1}', id="json"),
    ],
)
def test_text_of_each_format_is_extracted(data: bytes, name: str, kind: str, text: str) -> None:
    assert extract(data, name) == ExtractedText(text, kind, is_cut=False)


@pytest.mark.parametrize(
    ("old", "new", "last_row"),
    [
        pytest.param(b'ref="A1:C3"', b'ref="A1"', "", id="range that is too small"),
        pytest.param(
            b"</sheetData>",
            b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>',
            "\t" * 16_383 + "1\n",
            id="value in the last cell",
        ),
        pytest.param(b'ref="A1:C3"', b'ref="A1:XFD1048576"', "", id="range that is too large"),
    ],
)
def test_whole_sheet_is_read_whatever_range_it_names(old: bytes, new: bytes, last_row: str) -> None:
    text = f"# Cities\nOslo\t700000\nBergen\t\t1.5\n{last_row}\n"
    assert extract(documents.workbook_with(old, new), "a.xlsx").text == text


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        pytest.param(b"", "a.txt", "invalid_file", id="empty"),
        pytest.param(b"%PDF-1.4 and no more", "a.pdf", "invalid_file", id="broken pdf"),
        pytest.param(documents.pdf("", ""), "a.pdf", "invalid_file", id="pdf without text"),
        pytest.param(documents.word()[:-100], "a.docx", "invalid_file", id="cut docx"),
        pytest.param(documents.word_with(b"<w"), "a.docx", "invalid_file", id="broken docx"),
        pytest.param(documents.archive(readme=b"x"), "a.zip", "unsupported_file", id="zip"),
        pytest.param(b"\x89PNG\r\n\x1a\n", "a.txt", "unsupported_file", id="image"),
        pytest.param(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", "unsupported_file", id="old office"),
        pytest.param(bytes(range(256)) * 10, "a.txt", "unsupported_file", id="binary"),
        pytest.param(b"a\0\0\0" * 100, "a.txt", "unsupported_file", id="control characters"),
    ],
)
def test_file_without_readable_text_is_refused(data: bytes, name: str, code: str) -> None:
    with pytest.raises(ExtractionError) as refused:
        extract(data, name)
    assert refused.value.code == code, refused.value


@pytest.mark.slow
def test_zip_bomb_is_refused() -> None:
    with pytest.raises(ExtractionError) as refused:
        extract(documents.zip_bomb(), "a.docx")
    assert refused.value.code == "invalid_file", refused.value


@pytest.mark.parametrize("document", [pytest.param(LAUGHS, id="expanding"), pytest.param(LOCAL, id="of a local file")])
def test_entities_of_a_document_are_not_expanded(document: str) -> None:
    text = ""
    with suppress(ExtractionError):
        text = extract(documents.word_with(document.encode()), "a.docx").text
    assert text.strip() in ("", "&e0;", "&e10;")


def test_text_over_the_limit_is_cut() -> None:
    extracted = extract(b"x" * (limits.MAX_CHARS + 1))
    assert (len(extracted.text), extracted.is_cut) == (limits.MAX_CHARS, True)


def test_file_over_the_limit_is_refused() -> None:
    with pytest.raises(ExtractionError, match="64 MiB"):
        extract(bytes(limits.MAX_FILE_BYTES + 1))
