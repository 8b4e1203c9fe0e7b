"""Tables of the documentation."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table_rows(file: str, heading: str) -> dict[str, list[str]]:
    """Return the first table below `heading`: the cells of each row by its first cell, without backticks."""
    text = (DOCS / file).read_text().split(heading, 1)[1]
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            name = cells[0].strip("`| ")
            assert name not in table, f"{file} has two rows {name}"
            table[name] = cells[1:]
        elif table:
            break
    return table
