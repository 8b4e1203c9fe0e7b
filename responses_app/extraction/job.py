"""Extraction job: reads a file in a worker process, or as the program of a single run of the sandbox."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from typing import Final

from responses_app.extraction.errors import ExtractionError, invalid, unsupported
from responses_app.extraction.limits import MAX_ARCHIVE_FILES, MAX_EXPANDED_BYTES, MIB
from responses_app.extraction.text_buffer import TextBuffer, TextLimitReached

PDF, DOCX, XLSX, PPTX, HTML, TEXT = "pdf", "docx", "xlsx", "pptx", "html", "text"
# The main part of each Office format (ECMA-376).
OFFICE: Final = {"word/document.xml": DOCX, "xl/workbook.xml": XLSX, "ppt/presentation.xml": PPTX}
# Beginnings of formats without a readable text, and their names.
OTHERS: Final = (
    (b"\xd0\xcf\x11\xe0", "an old Office document, or one with a password"),
    (b"{\\rtf", "an RTF document"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"7z\xbc\xaf", "an archive"),
    (b"Rar!", "an archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"SQLite format 3\0", "a database"),
)
# A PDF may have other bytes before its header (ISO 32000-1, annex H.3.4.1).
PDF_HEADER_BYTES: Final = 1024
HTML_NAMES: Final = (".html", ".htm", ".xhtml")
HTML_BEGINNINGS: Final = (b"<!doctype html", b"<html")


def detect_format(data: bytes, name: str) -> str:
    """Return the format of a file. Raises ExtractionError for formats that are not read."""
    if b"%PDF-" in data[:PDF_HEADER_BYTES]:
        return PDF
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _office_format(data)
    other = next((what for beginning, what in OTHERS if data.startswith(beginning)), None)
    if other is not None:
        raise unsupported(f"The file is {other}.")
    if name.lower().endswith(HTML_NAMES) or data[:PDF_HEADER_BYTES].lstrip().lower().startswith(HTML_BEGINNINGS):
        return HTML
    return TEXT


def _office_format(data: bytes) -> str:
    """Return the format of an Office document, after a check of the declared sizes. Raises ExtractionError."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise invalid("The file is a broken ZIP archive.") from error
    if len(entries) > MAX_ARCHIVE_FILES or sum(entry.file_size for entry in entries) > MAX_EXPANDED_BYTES:
        raise invalid(
            f"The document is larger than {MAX_EXPANDED_BYTES // MIB} MiB after decompression, "
            f"or has more than {MAX_ARCHIVE_FILES:,} parts."
        )
    names = {entry.filename for entry in entries}
    format_name = next((kind for part, kind in OFFICE.items() if part in names), None)
    if format_name is None:
        raise unsupported("The file is an archive.")
    return format_name


FORMATS: Final = "responses_app.extraction.formats"
# Module and function of each format. A process of the sandbox imports the libraries of one format only.
READERS: Final[Mapping[str, tuple[str, str]]] = {
    PDF: ("pdf", "read_pdf"),
    DOCX: ("word", "read_docx"),
    XLSX: ("workbook", "read_xlsx"),
    PPTX: ("presentation", "read_pptx"),
    HTML: ("html_markdown", "read_html"),
    TEXT: ("plain", "read_text"),
}


def handle(payload: bytes) -> bytes:
    """Handle a request, a line with the file's name as JSON and then the bytes.

    Return `=`, a line with format and cut as JSON, and the text; or `!`, the error code and the message.
    """
    head, _, data = payload.partition(b"\n")
    try:
        kind, out = _read(data, json.loads(head))
    except ExtractionError as error:
        return f"!{error.code} {error}".encode(errors="replace")
    return b"=" + json.dumps([kind, out.is_cut]).encode() + b"\n" + out.text.encode()


def _read(data: bytes, name: str) -> tuple[str, TextBuffer]:
    kind = detect_format(data, name)
    out = TextBuffer()
    try:
        with suppress(TextLimitReached):
            _reader(kind)(data, out)
    except ExtractionError:
        raise
    except MemoryError as error:
        raise invalid("The file needs too much memory to be read.") from error
    except Exception as error:
        # The libraries raise exceptions of many types for broken files.
        raise invalid(f"The file is broken, or is no {kind.upper()} file ({type(error).__name__}).") from error
    return kind, out


def _reader(kind: str) -> Callable[[bytes, TextBuffer], None]:
    module, name = READERS[kind]
    reader: Callable[[bytes, TextBuffer], None] = getattr(import_module(f"{FORMATS}.{module}"), name)
    return reader


def main() -> None:
    """Handle the request of standard input, and write the answer to standard output, which libraries cannot reach."""
    with os.fdopen(os.dup(1), "wb") as out, open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
        out.write(handle(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
