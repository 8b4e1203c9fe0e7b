"""Text of PDF files, by PDFium."""

from __future__ import annotations

import pypdfium2

from responses_app.extraction.errors import invalid
from responses_app.extraction.limits import MAX_PAGES
from responses_app.extraction.text_buffer import TextBuffer


def read_pdf(data: bytes, out: TextBuffer) -> None:
    """Add the text of all pages, with an empty line between pages. Raises ExtractionError."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        reason = "needs a password" if "password" in str(error).lower() else "is broken"
        raise invalid(f"The PDF {reason}.") from error
    if len(document) > MAX_PAGES:
        raise invalid(f"The PDF has {len(document):,} pages. The limit is {MAX_PAGES:,}.")
    has_text = False
    for number in range(len(document)):
        text = _page_text(document, number)
        has_text = has_text or bool(text.strip())
        out.add(("\n\n" if number else "") + text)
    if not has_text:
        raise invalid("The PDF has no text. Its pages are probably pictures, which are not read.")


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str:
    page = document[number]
    text_page = page.get_textpage()
    try:
        text: str = text_page.get_text_bounded().replace("\r\n", "\n")
        return text
    finally:
        text_page.close()
        page.close()
