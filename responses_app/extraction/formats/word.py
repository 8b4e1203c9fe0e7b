"""Text of Word documents."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import docx
from docx.table import Table, _Cell

from responses_app.extraction.formats.rows import add_rows
from responses_app.extraction.text_buffer import TextBuffer

# Columns of a table in Word. A cell in the file may span any number.
MAX_COLUMNS = 63


def read_docx(data: bytes, out: TextBuffer) -> None:
    """Add the paragraphs and tables of a Word document."""
    for block in docx.Document(BytesIO(data)).iter_inner_content():
        if isinstance(block, Table):
            add_rows(out, _rows(block))
        else:
            out.add(f"{block.text}\n")


def _rows(table: Table) -> Iterator[list[str]]:
    """Yield the texts of each row. A merged cell has its text in each of its columns and rows.

    The property `cells` of the library makes a cell for each column that a cell spans, and follows merged rows by recursion.
    """
    above: dict[int, str] = {}
    for row in table.rows:
        cells, texts = list[str](), dict[int, str]()
        column = row.grid_cols_before
        for element in row._tr.tc_lst:
            text = above.get(column) if element.vMerge == "continue" else None
            text = _Cell(element, table).text if text is None else text
            cells += [text] * min(element.grid_span, MAX_COLUMNS)
            texts[column] = text
            column += element.grid_span
        above = texts
        yield cells
