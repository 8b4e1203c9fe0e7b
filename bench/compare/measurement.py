"""Measurement of the contenders in turns, each alone on the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.compare.contenders import Contender
from bench.support.load import Load, run_load, story_requests

PARTS = ("engine", "front", "postgres", "client")
# The servers are idle below this number of cores; the wait for that ends after some time. An engine polls for a second behind its
# last message, and this server seals the logs of the round.
IDLE_CORES, IDLE_WINDOW_S, IDLE_LIMIT_S = 0.08, 1.5, 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures of a round: tokens per second, milliseconds, and CPU microseconds per token by part."""

    kind: str
    streams: int
    tokens: int
    rate: float
    first_p50_ms: float
    first_p95_ms: float
    visible_p50_ms: float
    visible_p95_ms: float
    gap_p99_ms: float
    events_per_token: float
    client_lag_ms: float
    cpu_us: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the sample."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """Extent of the comparison: levels of concurrency, rounds, requests per stream and round, tokens of a request."""

    levels: Sequence[int]
    rounds: int
    turns: int
    tokens: int


def measure_all(contenders: Sequence[Contender], plan: MeasurementPlan) -> Iterator[Sample]:
    """Yield the samples: for each round and level every contender in turn. Each round begins with another contender."""
    for level in plan.levels:
        for contender in contenders:
            send_load(contender, level, level, plan.tokens)
    for number in range(plan.rounds):
        first = number % len(contenders)
        for level in plan.levels:
            for contender in (*contenders[first:], *contenders[:first]):
                wait_until_idle(contenders)
                yield measure(contender, level, plan)


def wait_until_idle(contenders: Sequence[Contender]) -> None:
    """Wait until no server works behind the last measurement, up to IDLE_LIMIT_S seconds."""
    until = time.monotonic() + IDLE_LIMIT_S
    before = _cpu_s(contenders)
    while time.monotonic() < until:
        time.sleep(IDLE_WINDOW_S)
        after = _cpu_s(contenders)
        if after - before < IDLE_CORES * IDLE_WINDOW_S:
            return
        before = after


def _cpu_s(contenders: Sequence[Contender]) -> float:
    servers = {id(server): server for contender in contenders for server in contender.servers}
    return sum(sum(server.parts().values()) for server in servers.values())


def measure(contender: Contender, streams: int, plan: MeasurementPlan) -> Sample:
    """Measure a round of a contender."""
    before = contender.cpu()
    load = send_load(contender, streams, requests_of(streams, plan), plan.tokens)
    after = contender.cpu()
    return sample(contender.kind, streams, load, {part: after[part] - before.get(part, 0.0) for part in after})


def requests_of(streams: int, plan: MeasurementPlan) -> int:
    """Count the requests of a round: a few streams get more turns, so that the round takes long enough."""
    return max(streams * plan.turns, 6)


def send_load(contender: Contender, streams: int, requests: int, tokens: int) -> Load:
    """Send requests of up to `tokens` tokens."""
    fields = {"temperature": 0, "max_output_tokens": tokens, **contender.fields}
    return run_load(contender.target, story_requests(contender.target, requests, **fields), streams)


def sample(kind: str, streams: int, load: Load, cpu: dict[str, float]) -> Sample:
    """Compute the figures of a load; `cpu` are the CPU seconds of the parts of the server."""
    seconds = part_seconds(load, cpu)
    return Sample(
        kind,
        streams,
        load.tokens,
        load.rate,
        1e3 * load.first(0.5),
        1e3 * load.first(0.95),
        1e3 * load.visible(0.5),
        1e3 * load.visible(0.95),
        1e3 * load.largest_gap(0.99),
        load.events / load.tokens,
        1e3 * load.lag(0.99),
        {part: 1e6 * seconds[part] / load.tokens for part in PARTS},
    )


def part_seconds(load: Load, cpu: dict[str, float]) -> dict[str, float]:
    """Return the CPU seconds of each of PARTS; the front end are all processes outside the engine and Postgres."""
    seconds = {part: cpu.get(part, 0.0) for part in ("engine", "postgres")}
    seconds["front"] = sum(cpu.values()) - sum(seconds.values())
    return seconds | {"client": load.client_cpu}
