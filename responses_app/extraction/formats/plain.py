"""Text of plain files in any encoding, and of HTML."""

from __future__ import annotations

import codecs
from html.parser import HTMLParser
from typing import Final

from charset_normalizer import from_bytes

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
HIDDEN: Final = frozenset({"script", "style", "template", "noscript"})
_BLOCK_NAMES: Final = (
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol "
    "option p pre section table td th tr title ul"
)
BLOCKS: Final = frozenset(_BLOCK_NAMES.split())


def read_text(data: bytes, out: TextBuffer) -> None:
    """Add a plain text. Raises ExtractionError if the bytes are no text."""
    out.add(decode(data))


def read_html(data: bytes, out: TextBuffer) -> None:
    """Add the text of an HTML page, without scripts and styles. Raises ExtractionError if the bytes are no text."""
    reader = _HtmlReader(out)
    reader.feed(decode(data))
    reader.close()


def decode(data: bytes) -> str:
    """Decode a text: by its byte order mark, as UTF-8, or by a guess. Raises ExtractionError if the bytes are no text."""
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
        guess = None if b"\0" in data[:SAMPLE_BYTES] else from_bytes(data[:SAMPLE_BYTES]).best()
        if guess is None:
            raise unsupported("The file is no text.") from error
        return data.decode(guess.encoding, "replace")


class _HtmlReader(HTMLParser):
    """Parser that adds the text between tags, with a line for each block."""

    def __init__(self, out: TextBuffer) -> None:
        super().__init__(convert_charrefs=True)
        self._out = out
        self._hidden = 0
        self._is_line_start = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        del attrs
        self._hidden += tag in HIDDEN
        self._break_line(tag)

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        self._break_line(tag)

    def handle_data(self, data: str) -> None:
        """Add text with runs of white space as a blank."""
        words = " ".join(data.split())
        if self._hidden or not words:
            return
        before = " " if data[0].isspace() and not self._is_line_start else ""
        self._out.add(before + words + (" " if data[-1].isspace() else ""))
        self._is_line_start = False

    def _break_line(self, tag: str) -> None:
        if tag in BLOCKS and not self._is_line_start:
            self._out.add("\n")
            self._is_line_start = True
