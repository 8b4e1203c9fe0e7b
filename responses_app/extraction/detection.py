"""Detection of the format of a file by the bytes; the name decides only between kinds of text."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import Final

from responses_app.extraction.errors import invalid, unsupported
from responses_app.extraction.limits import MAX_ARCHIVE_FILES, MAX_EXPANDED_BYTES, MIB

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
