"""Cells of CSV files that spreadsheets open."""

from __future__ import annotations

from typing import Any, Final

# First characters of formulas. Spreadsheets read the full-width forms as the ASCII characters.
FORMULA_BEGINNINGS: Final = tuple("=+-@\t\r\n＝＋－＠")


def csv_cell(value: Any) -> Any:
    """Return a text as a cell that no spreadsheet takes for a formula, and None as an empty cell. Numbers stay as they are."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_BEGINNINGS) else value
