"""Rounds of streams from a recording: events per second, and CPU time per event by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.support.load import Load, run_load
from bench.support.quantiles import Spread
from bench.support.servers import BenchServer
from bench.support.stream_client import Target

HOST, KEY, MODEL = "127.0.0.1", "sk-bench", "tape"


@dataclass(frozen=True, slots=True)
class MeasuredRound:
    """Load of a round with the CPU seconds of each part of the server, and of the client."""

    load: Load
    cpu: dict[str, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds of a level and kind; `tokens` per second, `cost` in CPU microseconds per event by part."""

    streams: int
    store: bool
    rate: Spread
    tokens: float
    cost: dict[str, float]

    @property
    def server_cost(self) -> float:
        """Add up the CPU microseconds per event of the server."""
        return sum(cost for part, cost in self.cost.items() if part != "client")


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of a level and kind, and the load of the round with the median gap."""

    figures: Figures
    typical: Load


def measure(server: BenchServer, streams: int, requests: int, *, store: bool) -> MeasuredRound:
    """Measure a round of `requests` requests, `streams` at a time."""
    target = Target(HOST, server.port, MODEL, KEY)
    data = [target.request(input=f"{number}", store=store) for number in range(requests)]
    before = server.parts()
    load = run_load(target, data, streams)
    after = server.parts()
    cpu = {part: after[part] - before.get(part, 0.0) for part in sorted(after)}
    return MeasuredRound(load, cpu | {"client": load.client_cpu})


def summarize(streams: int, store: bool, rounds: Sequence[MeasuredRound]) -> Measured:
    """Compute the medians of the rounds."""
    loads = sorted((one.load for one in rounds), key=lambda load: load.gap(0.99))
    return Measured(_figures(streams, store, rounds), loads[len(loads) // 2])


def _figures(streams: int, store: bool, rounds: Sequence[MeasuredRound]) -> Figures:
    parts = sorted({part for one in rounds for part in one.cpu})
    return Figures(
        streams,
        store,
        Spread.of([one.load.events / one.load.seconds for one in rounds]),
        median(one.load.rate for one in rounds),
        {part: median(1e6 * one.cpu.get(part, 0.0) / one.load.events for one in rounds) for part in parts},
    )
