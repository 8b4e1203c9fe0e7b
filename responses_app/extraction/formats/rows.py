"""Rows of tables as lines."""

from __future__ import annotations

from collections.abc import Iterable

from responses_app.extraction.text_buffer import TextBuffer


def add_rows(out: TextBuffer, rows: Iterable[Iterable[str]]) -> None:
    """Add rows of a table, with tabs between cells."""
    for row in rows:
        cells, size = list[str](), 0
        for cell in row:
            cells.append(cell.replace("\n", " "))
            size += len(cell) + 1
            # Merged cells may have a text very often.
            if size > out.left:
                break
        out.add("\t".join(cells).rstrip("\t") + "\n")
