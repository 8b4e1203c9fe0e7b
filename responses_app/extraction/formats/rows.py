"""Rows of tables as lines."""

from __future__ import annotations

from collections.abc import Iterable

from responses_app.extraction.text_buffer import TextBuffer


def add_rows(out: TextBuffer, rows: Iterable[list[str]]) -> None:
    """Add rows of a table, with tabs between cells."""
    for row in rows:
        out.add("\t".join(cell.replace("\n", " ") for cell in row).rstrip("\t") + "\n")
