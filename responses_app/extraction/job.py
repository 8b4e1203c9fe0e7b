"""Extraction job: reads a file in a worker process, or as the program of a single run of the sandbox."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Final

from responses_app.extraction.detection import DOCX, HTML, PDF, PPTX, TEXT, XLSX, detect_format
from responses_app.extraction.errors import ExtractionError, invalid
from responses_app.extraction.text_buffer import TextBuffer, TextLimitReached

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
