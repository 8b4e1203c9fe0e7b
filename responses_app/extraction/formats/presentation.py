"""Text of PowerPoint presentations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import pptx

from responses_app.extraction.errors import invalid
from responses_app.extraction.formats.rows import add_rows
from responses_app.extraction.limits import MAX_PAGES
from responses_app.extraction.text_buffer import TextBuffer


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
                add_rows(out, ([cell.text for cell in row.cells] for row in shape.table.rows))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            out.add(f"Notes: {slide.notes_slide.notes_text_frame.text}\n")
        out.add("\n")


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield all shapes, also inside groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape
