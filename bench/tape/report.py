"""Lines and tables of the measurement with a recording."""

from __future__ import annotations

from collections.abc import Sequence

from bench.support.load import Load
from bench.support.markdown import format_spread, markdown_table
from bench.tape.measurement import Figures, Measured

KINDS = {True: "stored", False: "not stored"}


def describe(figures: Figures) -> str:
    """Describe the figures in a single line."""
    return (
        f"{figures.streams:>5} streams {KINDS[figures.store]:<10} {figures.rate.median:>8.0f} events/s {figures.tokens:>8.0f} tokens/s "
        f"CPU µs an event: server {figures.server_cost:.0f} ({_shares(figures)})"
    )


def describe_times(load: Load) -> str:
    """Describe gaps, times to the connection, the first event and the first delta, and the lag of the client, in milliseconds."""
    gaps = ", ".join(f"{name} {1e3 * load.gap(share):.0f}" for name, share in (("median", 0.5), ("p99", 0.99), ("most", 1)))
    connected, opened, first = (
        f"median {1e3 * times(0.5):.0f}, p99 {1e3 * times(0.99):.0f}, most {1e3 * times(1):.0f}"
        for times in (load.connected, load.opened, load.first)
    )
    lag = f"p99 {1e3 * load.lag(0.99):.0f}, most {1e3 * load.lag(1):.0f}"
    return f"      ms: gaps {gaps}; connected {connected}; first event {opened}; first delta {first}; lag of the client {lag}"


def rates_table(measured: Sequence[Measured]) -> list[str]:
    """Return the table of events per second without delays."""
    head = ["streams", "", "events/s", "tokens/s", "CPU µs per event: server", "of it, and of the client"]
    rows = [
        [
            str(one.streams),
            KINDS[one.store],
            format_spread(one.rate),
            f"{one.tokens:,.0f}",
            f"{one.server_cost:.0f}",
            _shares(one),
        ]
        for one in (each.figures for each in measured)
    ]
    return markdown_table(head, rows)


def times_table(measured: Sequence[Measured]) -> list[str]:
    """Return the table of gaps and times to the first event."""
    head = [
        "streams",
        "",
        "gap median, p99",
        "first event median, p99",
        "first delta median, p99",
        "connected p99",
        "lag of the client p99",
        "CPU µs per event",
    ]
    return markdown_table(head, [_times(one.figures, one.typical) for one in measured])


def _times(figures: Figures, load: Load) -> list[str]:
    waits = [(times(0.5), times(0.99)) for times in (load.gap, load.opened, load.first)]
    times = [
        ", ".join(f"{1e3 * seconds:.0f} ms" for seconds in some)
        for some in (*waits, (load.connected(0.99),), (load.lag(0.99),))
    ]
    return [str(figures.streams), KINDS[figures.store], *times, f"{figures.server_cost:.0f}"]


def _shares(figures: Figures) -> str:
    return ", ".join(f"{part} {cost:.0f}" for part, cost in figures.cost.items())
