"""Extraction job: reads a file in a worker process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from responses_app.extraction.detection import DOCX, HTML, PDF, PPTX, TEXT, XLSX, detect_format
from responses_app.extraction.errors import ExtractionError, invalid
from responses_app.extraction.formats.office import read_docx, read_pptx, read_xlsx
from responses_app.extraction.formats.pdf import read_pdf
from responses_app.extraction.formats.plain import read_html, read_text
from responses_app.extraction.text_buffer import TextBuffer, TextLimitReached

READERS: Final[Mapping[str, Callable[[bytes, TextBuffer], None]]] = {
    PDF: read_pdf,
    DOCX: read_docx,
    XLSX: read_xlsx,
    PPTX: read_pptx,
    HTML: read_html,
    TEXT: read_text,
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
            READERS[kind](data, out)
    except ExtractionError:
        raise
    except MemoryError as error:
        raise invalid("The file needs too much memory to be read.") from error
    except Exception as error:
        # The libraries raise exceptions of many types for broken files.
        raise invalid(f"The file is broken, or is no {kind.upper()} file ({type(error).__name__}).") from error
    return kind, out
