"""Text of Excel workbooks."""

from __future__ import annotations

from io import BytesIO

import openpyxl

from responses_app.extraction.formats.rows import add_rows
from responses_app.extraction.text_buffer import TextBuffer


def read_xlsx(data: bytes, out: TextBuffer) -> None:
    """Add the values of all sheets of a workbook, a line for each row that has values."""
    workbook = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        out.add(f"# {sheet.title}\n")
        # Some programs write a range that is smaller than the sheet, or one whose rows have 16,384 cells.
        sheet.reset_dimensions()
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        add_rows(out, (row for row in rows if any(row)))
        out.add("\n")


def _cell(value: object) -> str:
    return "" if value is None else str(value)
