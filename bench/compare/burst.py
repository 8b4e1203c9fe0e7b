"""Bursts: many short requests that arrive at once, and the table of their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.compare.contenders import Contender
from bench.compare.measurement import PARTS, part_seconds, send_load, wait_until_idle
from bench.compare.report import NAMES, visible_ms
from bench.support.load import Load
from bench.support.markdown import format_spread, markdown_table
from bench.support.quantiles import Spread

CPU_HEAD = "CPU ms per request: " + ", ".join(PARTS)


@dataclass(frozen=True, slots=True)
class Burst:
    """Figures of a burst: requests per second, milliseconds, and CPU milliseconds per request by part."""

    kind: str
    requests: int
    tokens: int
    rate: float
    first_p50_ms: float
    first_p95_ms: float
    visible_p50_ms: float
    visible_p95_ms: float
    cpu_ms: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the burst."""
        return asdict(self)


def measure_bursts(contenders: Sequence[Contender], rounds: int, requests: int, tokens: int) -> Iterator[Burst]:
    """Yield a burst of every contender in each round, each alone on the machine. One burst of each comes before the first round."""
    for contender in contenders:
        send_load(contender, requests, requests, tokens)
    for number in range(rounds):
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            wait_until_idle(contenders)
            before = contender.cpu()
            load = send_load(contender, requests, requests, tokens)
            after = contender.cpu()
            yield burst(contender.kind, load, {part: after[part] - before.get(part, 0.0) for part in after})


def burst(kind: str, load: Load, cpu: dict[str, float]) -> Burst:
    """Compute the figures of a load in which each stream is a request; `cpu` has the CPU seconds by part of the server."""
    seconds, requests = part_seconds(load, cpu), len(load.streams)
    return Burst(
        kind,
        requests,
        load.tokens,
        requests / load.seconds,
        1e3 * load.first(0.5),
        1e3 * load.first(0.95),
        1e3 * load.visible(0.5),
        1e3 * load.visible(0.95),
        {part: 1e3 * seconds[part] / requests for part in PARTS},
    )


def bursts_table(bursts: Sequence[Burst]) -> list[str]:
    """Return the lines of the table of bursts in Markdown."""
    head = ["burst of", "server", "requests/s", "first token p50, p95", "first text p50, p95", CPU_HEAD]
    present = [kind for kind in NAMES if any(one.kind == kind for one in bursts)]
    return markdown_table(head, [_figures([one for one in bursts if one.kind == kind]) for kind in present])


def describe_burst(one: Burst) -> str:
    """Describe a burst in a single line."""
    cpu = ", ".join(f"{part} {cost:.2f}" for part, cost in one.cpu_ms.items())
    return (
        f"burst {one.requests} {one.kind:<12} {one.rate:>7.0f} requests/s, first token {one.first_p50_ms:.0f} and "
        f"{one.first_p95_ms:.0f} ms, first text {visible_ms(one.visible_p50_ms, one.visible_p95_ms)}, CPU ms per request: {cpu}"
    )


def _figures(some: Sequence[Burst]) -> list[str]:
    def median(figure: Callable[[Burst], float]) -> float:
        return Spread.of([figure(one) for one in some]).median

    cpu = [median(lambda one, part=part: one.cpu_ms[part]) for part in PARTS]  # type: ignore[misc]
    return [
        str(some[0].requests),
        NAMES[some[0].kind],
        format_spread(Spread.of([one.rate for one in some])),
        f"{median(lambda one: one.first_p50_ms):.0f} ms, {median(lambda one: one.first_p95_ms):.0f} ms",
        visible_ms(median(lambda one: one.visible_p50_ms), median(lambda one: one.visible_p95_ms)),
        ", ".join(f"{cost:.2f}" for cost in cpu),
    ]
