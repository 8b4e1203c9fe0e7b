"""Tables of a comparison: medians and ranges of the rounds, and the ratios of the rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

from bench.compare.measurement import PARTS, Sample
from bench.support.markdown import format_spread, markdown_table
from bench.support.quantiles import Spread

NAMES = {
    "vllm": "vLLM's own",
    "vllm-chat": "vLLM's own, Chat Completions",
    "agentic-api": "agentic-api",
    "stored": "this server, stored",
    "chat": "this server, Chat Completions",
    "messages": "this server, Messages",
    "unstored": "this server, not stored",
    "worker": "this server, stored, engine in a worker",
}
CPU_HEAD = "CPU µs per token: " + ", ".join(PARTS)
# Numerator and denominator of each column of the table of ratios.
RATIOS = (
    ("stored", "vllm"),
    ("unstored", "vllm"),
    ("worker", "vllm"),
    ("stored", "unstored"),
    ("stored", "agentic-api"),
    ("chat", "vllm-chat"),
    ("chat", "stored"),
    ("messages", "stored"),
)
# Pairs of API formats of this server whose CPU time outside the engine and the client is compared.
CPU_RATIOS = (("chat", "stored"), ("messages", "stored"))


def visible_ms(p50: float, p95: float) -> str:
    """Return both times in milliseconds, or a dash where no answer had text: all the tokens were reasoning."""
    return "–" if isnan(p50) else f"{p50:.0f} ms, {p95:.0f} ms"


def levels(samples: Sequence[Sample]) -> list[int]:
    """List the numbers of streams."""
    return sorted({sample.streams for sample in samples})


def kinds(samples: Sequence[Sample]) -> list[str]:
    """List the kinds of servers in the order of NAMES."""
    return [kind for kind in NAMES if any(sample.kind == kind for sample in samples)]


def spread(samples: Sequence[Sample], kind: str, streams: int, figure: Callable[[Sample], float]) -> Spread:
    """Compute the spread of a figure over the rounds of a kind at a level."""
    return Spread.of([figure(sample) for sample in samples if (sample.kind, sample.streams) == (kind, streams)])


def ratio(samples: Sequence[Sample], above: str, below: str, streams: int) -> float:
    """Divide the median rates of two kinds."""
    return spread(samples, above, streams, _rate).median / spread(samples, below, streams, _rate).median


def figures_table(samples: Sequence[Sample]) -> list[str]:
    """Return the lines of the table of figures in Markdown."""
    head = ["streams", "server", "tokens/s", "first token p50, p95", "first text p50, p95", "largest gap p99", CPU_HEAD]
    rows = [_figures(samples, kind, streams) for streams in levels(samples) for kind in kinds(samples)]
    return markdown_table(head, rows)


def ratios_table(samples: Sequence[Sample]) -> list[str]:
    """Return the lines of the table of ratios in Markdown."""
    present = kinds(samples)
    pairs = [pair for pair in RATIOS if set(pair) <= set(present)]
    of_cpu = [pair for pair in CPU_RATIOS if set(pair) <= set(present)]
    head = ["streams", *(f"{above} / {below}" for above, below in pairs), *(f"CPU of {one} / {two}" for one, two in of_cpu)]
    rows = [
        [
            str(streams),
            *(f"{ratio(samples, above, below, streams):.2f}" for above, below in pairs),
            *(f"{cpu_ratio(samples, above, below, streams):.2f}" for above, below in of_cpu),
        ]
        for streams in levels(samples)
    ]
    return markdown_table(head, rows)


def cpu_ratio(samples: Sequence[Sample], above: str, below: str, streams: int) -> float:
    """Divide the median CPU times per token of two kinds, of the front end and Postgres together."""

    def median(kind: str) -> float:
        return spread(samples, kind, streams, lambda one: one.cpu_us["front"] + one.cpu_us["postgres"]).median

    return median(above) / median(below)


def describe(sample: Sample) -> str:
    """Describe a sample in a single line."""
    cpu = ", ".join(f"{part} {cost:.0f}" for part, cost in sample.cpu_us.items())
    return (
        f"{sample.streams:>4} {sample.kind:<12} {sample.rate:>7.0f} tokens/s, first token {sample.first_p50_ms:.0f} and "
        f"{sample.first_p95_ms:.0f} ms, first text "
        f"{visible_ms(sample.visible_p50_ms, sample.visible_p95_ms)}, gap {sample.gap_p99_ms:.0f} ms, CPU µs per token: {cpu}; "
        f"{sample.events_per_token:.2f} events per token, client lag p99 {sample.client_lag_ms:.0f} ms"
    )


def _figures(samples: Sequence[Sample], kind: str, streams: int) -> list[str]:
    def median(figure: Callable[[Sample], float]) -> float:
        return spread(samples, kind, streams, figure).median

    rates = spread(samples, kind, streams, _rate)
    cpu = [median(lambda sample, part=part: sample.cpu_us[part]) for part in PARTS]  # type: ignore[misc]
    return [
        str(streams),
        NAMES[kind],
        format_spread(rates),
        f"{median(lambda one: one.first_p50_ms):.0f} ms, {median(lambda one: one.first_p95_ms):.0f} ms",
        visible_ms(median(lambda one: one.visible_p50_ms), median(lambda one: one.visible_p95_ms)),
        f"{median(lambda one: one.gap_p99_ms):.0f} ms",
        ", ".join(f"{cost:.0f}" for cost in cpu),
    ]


def _rate(sample: Sample) -> float:
    return sample.rate
