"""Text of Word documents, Excel workbooks and PowerPoint presentations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import docx
import openpyxl
import pptx
from docx.table import Table

from responses_app.extraction.errors import invalid
from responses_app.extraction.limits import MAX_PAGES
from responses_app.extraction.text_buffer import TextBuffer


def read_docx(data: bytes, out: TextBuffer) -> None:
    """Add the paragraphs and tables of a Word document."""
    for block in docx.Document(BytesIO(data)).iter_inner_content():
        if isinstance(block, Table):
            _add_rows(out, ([cell.text for cell in row.cells] for row in block.rows))
        else:
            out.add(f"{block.text}\n")


def read_xlsx(data: bytes, out: TextBuffer) -> None:
    """Add the values of all sheets of a workbook, a line for each row that has values."""
    workbook = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        out.add(f"# {sheet.title}\n")
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        _add_rows(out, (row for row in rows if any(row)))
        out.add("\n")


def read_pptx(data: bytes, out: TextBuffer) -> None:
    """Add the text of all slides with tables and notes. Raises ExtractionError."""
    slides = pptx.Presentation(BytesIO(data)).slides
    if len(slides) > MAX_PAGES:
        raise invalid(f"The presentation has {len(slides):,} slides. The limit is {MAX_PAGES:,}.")
    for number, slide in enumerate(slides, 1):
        out.add(f"# Slide {number}\n")
        for shape in _shapes(slide.shapes):
            if shape.has_text_frame:
                out.add(f"{shape.text_frame.text}\n")
            elif getattr(shape, "has_table", False):
                _add_rows(out, ([cell.text for cell in row.cells] for row in shape.table.rows))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            out.add(f"Notes: {slide.notes_slide.notes_text_frame.text}\n")
        out.add("\n")


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield all shapes, those in groups included."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _add_rows(out: TextBuffer, rows: Iterable[list[str]]) -> None:
    """Add rows of a table, with tabs between cells."""
    for row in rows:
        out.add("\t".join(cell.replace("\n", " ") for cell in row).rstrip("\t") + "\n")


def _cell(value: object) -> str:
    return "" if value is None else str(value)
