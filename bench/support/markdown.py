"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bench.support.quantiles import Spread


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [markdown_row(head), "|---" * len(head) + "|", *map(markdown_row, rows)]


def markdown_row(cells: Sequence[str]) -> str:
    """Return the line of a row, or of the head, of a table."""
    return f"| {' | '.join(cells)} |"


def number_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose columns are aligned to the right."""
    return [markdown_row(head), markdown_row(["---:"] * len(head)), *map(markdown_row, rows)]


def format_spread(values: Spread) -> str:
    """Format the median, and the range unless all values are rounded to the same."""
    median, lowest, highest = (f"{value:,.0f}" for value in (values.median, values.lowest, values.highest))
    return median if lowest == highest else f"{median} ({lowest} to {highest})"
