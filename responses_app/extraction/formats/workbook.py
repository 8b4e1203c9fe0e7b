"""Text of Excel workbooks."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any

import openpyxl

from responses_app.extraction.formats.rows import add_rows
from responses_app.extraction.text_buffer import TextBuffer, TextLimitReached

# Rows of a sheet in Excel. A row in the file may have any number.
MAX_ROWS = 1_048_576
# Rows without values of all sheets, which the library makes for the rows that a sheet leaves out.
MAX_EMPTY_ROWS = 10_000_000


def read_xlsx(data: bytes, out: TextBuffer) -> None:
    """Add the values of all sheets of a workbook, a line for each row that has values."""
    workbook = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    rows = _FilledRows(out)
    for sheet in workbook.worksheets:
        out.add(f"# {sheet.title}\n")
        # Some programs write a range that is smaller than the sheet, or one whose rows have 16,384 cells.
        sheet.reset_dimensions()
        add_rows(out, rows.of(sheet))
        out.add("\n")


class _FilledRows:
    """Rows of sheets that have values. Very many rows without values end the text."""

    def __init__(self, out: TextBuffer) -> None:
        self._out, self._left = out, MAX_EMPTY_ROWS

    def of(self, sheet: Any) -> Iterator[list[str]]:
        """Yield the texts of the rows of `sheet`. Raises TextLimitReached."""
        for row in islice(sheet.iter_rows(values_only=True), MAX_ROWS):
            cells = [_cell(value) for value in row]
            if any(cells):
                yield cells
                continue
            self._left -= 1
            if self._left < 0:
                self._out.is_cut = True
                raise TextLimitReached


def _cell(value: object) -> str:
    return "" if value is None else str(value)
