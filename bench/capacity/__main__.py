"""Plan and simulation of a day for a number of requests: `python -m bench.capacity --requests 1000000`.

Prints the assumptions, the plan by the formula of docs/operations/scale.md, and a simulated day with the limits and the failure of a host.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from bench.capacity.costs import Costs
from bench.capacity.plan import CapacityPlan
from bench.capacity.simulation import Cluster, Simulation, SimulationOutcome
from bench.capacity.workload import HOUR_S, PROFILES, Workload


def main() -> None:
    """Print the plan and the simulated day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=float, default=1e6, help="a day")
    parser.add_argument("--profile", choices=PROFILES, default="office")
    for name, default in (("median-tokens", 300.0), ("sigma", 0.8), ("tokens-per-s", 40.0), ("first-token-s", 0.5)):
        parser.add_argument(f"--{name}", type=float, default=default)
    for name, default in (("deltas-per-event", 1.0), ("keep-days", 90.0), ("fails-at-hour", -1.0), ("fails-for", 600.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    for name, number in (("hosts", 2), ("processes", 4), ("slots", 256), ("max-concurrent", 512), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--plan-only", action="store_true", help="without the simulated day")
    options = parser.parse_args()
    workload, costs = _workload(options), Costs()
    plan = CapacityPlan(workload, costs)
    _print_table("Assumptions", _assumptions(workload, costs))
    _print_table("Plan", plan.rows())
    if not options.plan_only:
        cluster = _cluster(options)
        _print_table("Cluster", ((name, str(value)) for name, value in asdict(cluster).items()))
        _print_table("Simulated day", day_rows(Simulation(workload, cluster, options.seed).run(), plan))


def _workload(options: argparse.Namespace) -> Workload:
    return Workload(
        options.requests,
        PROFILES[options.profile],
        median_tokens=options.median_tokens,
        sigma=options.sigma,
        tokens_per_s=options.tokens_per_s,
        first_token_s=options.first_token_s,
        deltas_per_event=options.deltas_per_event,
        keep_days=options.keep_days,
    )


def _cluster(options: argparse.Namespace) -> Cluster:
    fails_at = options.fails_at_hour * HOUR_S if options.fails_at_hour >= 0 else None
    return Cluster(options.hosts, options.processes, options.slots, options.max_concurrent, fails_at, options.fails_for)


def _assumptions(workload: Workload, costs: Costs) -> Iterator[tuple[str, str]]:
    yield from ((name.replace("_", " "), str(value)) for name, value in (asdict(workload) | asdict(costs)).items())
    yield "mean tokens of a response", f"{workload.mean_tokens:,.0f}"
    yield "mean seconds of a response", f"{workload.mean_seconds:,.1f}"
    yield "mean events of a response", f"{workload.events_per_response:,.0f}"


def day_rows(outcome: SimulationOutcome, plan: CapacityPlan) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table of a simulated day."""
    peak_events = max(outcome.events)
    per_event = plan.costs.postgres_us_per_event + plan.costs.archive_postgres_us_per_event
    yield "responses, refused with 429, taken over", f"{outcome.responses:,}, {outcome.refused:,}, {outcome.taken_over:,}"
    yield "responses at a time, mean and most", f"{_mean(outcome.running):,.0f}, {outcome.max_running:,}"
    yield "events/s, mean and busiest second", f"{_mean(outcome.events):,.0f}, {peak_events:,.0f}"
    yield "cores of Postgres in the busiest second", f"{peak_events * per_event / 1e6:,.2f}"
    yield "longest queue", f"{outcome.max_queue:,}"
    yield "wait for a slot in s, median, p99 and most", ", ".join(f"{outcome.wait(share):,.1f}" for share in (0.5, 0.99, 1))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _print_table(title: str, rows: Iterable[tuple[str, str]]) -> None:
    print(f"{title}:")
    for name, value in rows:
        print(f"  {name:<46} {value}")


if __name__ == "__main__":
    main()
