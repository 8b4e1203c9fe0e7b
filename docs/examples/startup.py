"""Example of RESPONSES_CONTAINER_STARTUP: code that each container of the code interpreter runs at the start."""

from __future__ import annotations


def plot(n: int) -> None:
    """Draw the squares of the numbers from 0 to `n`."""
    from matplotlib import pyplot

    pyplot.plot([number**2 for number in range(n + 1)], marker="o")
    pyplot.title(f"Squares up to {n}")
