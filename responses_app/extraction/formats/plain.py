"""Text of plain files in any encoding."""

from __future__ import annotations

import codecs
from typing import Final

from responses_app.extraction.errors import unsupported
from responses_app.extraction.text_buffer import TextBuffer

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes from which the encoding is guessed.
SAMPLE_BYTES: Final = 64 * 1024
# Share of control characters above which a file is no text.
MAX_CONTROL_SHARE: Final = 0.02


def read_text(data: bytes, out: TextBuffer) -> None:
    """Add a plain text. Raises ExtractionError if the bytes are no text."""
    out.add(decode(data))


def decode(data: bytes) -> str:
    """Decode a text: by the byte order mark, as UTF-8, or by a guess. Raises ExtractionError if the bytes are no text."""
    text = _decode(data)
    sample = text[:SAMPLE_BYTES]
    controls = sum(char < " " and char not in "\t\n\r\f\x1b" for char in sample)
    if controls > MAX_CONTROL_SHARE * len(sample):
        raise unsupported("The file is no text.")
    return text.replace("\r\n", "\n")


def _decode(data: bytes) -> str:
    marked = next((encoding for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if marked is not None:
        return data.decode(marked, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # Here, as the server reads texts in UTF-8 in its own process.
        from charset_normalizer import from_bytes

        guess = None if b"\0" in data[:SAMPLE_BYTES] else from_bytes(data[:SAMPLE_BYTES]).best()
        if guess is None:
            raise unsupported("The file is no text.") from error
        return data.decode(guess.encoding, "replace")
