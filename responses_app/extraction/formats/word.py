"""Text of Word documents."""

from __future__ import annotations

from io import BytesIO

import docx
from docx.table import Table

from responses_app.extraction.formats.rows import add_rows
from responses_app.extraction.text_buffer import TextBuffer


def read_docx(data: bytes, out: TextBuffer) -> None:
    """Add the paragraphs and tables of a Word document."""
    for block in docx.Document(BytesIO(data)).iter_inner_content():
        if isinstance(block, Table):
            add_rows(out, ([cell.text for cell in row.cells] for row in block.rows))
        else:
            out.add(f"{block.text}\n")
