"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bench.support.quantiles import Spread


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]


def format_spread(values: Spread) -> str:
    """Format the median, and the range unless all values are rounded to the same."""
    median, lowest, highest = (f"{value:,.0f}" for value in (values.median, values.lowest, values.highest))
    return median if lowest == highest else f"{median} ({lowest} to {highest})"
