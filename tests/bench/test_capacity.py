"""Arithmetic of the plan and of the simulated day."""

from __future__ import annotations

import statistics

import pytest

from bench.capacity.costs import Costs
from bench.capacity.plan import CapacityPlan
from bench.capacity.simulation import Cluster, Simulation, SimulationOutcome
from bench.capacity.workload import DAY_S, FLAT, Workload

WORKLOAD = Workload(50_000)
PLENTY = Cluster(hosts=2, slots=1000)


def simulated(workload: Workload = WORKLOAD, cluster: Cluster = PLENTY) -> SimulationOutcome:
    return Simulation(workload, cluster).run()


def test_mean_number_of_running_responses_is_rate_times_duration() -> None:
    """Little's law."""
    outcome = simulated()
    assert statistics.fmean(outcome.running) == pytest.approx(
        CapacityPlan(WORKLOAD, Costs()).concurrency(WORKLOAD.mean_rate), rel=0.02
    )
    assert outcome.responses == pytest.approx(50_000, rel=0.02)


def test_all_events_of_all_responses_are_counted() -> None:
    outcome = simulated()
    assert sum(outcome.events) == pytest.approx(outcome.responses * WORKLOAD.events_per_response, rel=0.02)
    assert min(outcome.events) >= -1e-6


def test_mean_wait_is_that_of_the_theory_for_a_single_slot() -> None:
    """Pollaczek and Khinchine: with load r and constant duration s the mean wait is r s / (2 (1 - r))."""
    workload = Workload(DAY_S / 20, FLAT, median_tokens=380, sigma=0.0)
    assert workload.mean_seconds == pytest.approx(10)
    outcome = simulated(workload, Cluster(hosts=1, processes=1, slots=1))
    assert statistics.fmean(outcome.waits) == pytest.approx(5, rel=0.15)


def test_requests_beyond_the_limit_are_refused() -> None:
    outcome = simulated(cluster=Cluster(hosts=1, processes=1, slots=4, max_concurrent=8))
    assert outcome.refused > 0
    assert outcome.max_queue <= 8
    assert outcome.max_running == 4


def test_responses_of_a_failed_host_are_taken_over_and_end() -> None:
    outcome = simulated(cluster=Cluster(hosts=2, slots=1000, fails_at=DAY_S / 2))
    assert outcome.taken_over > 0
    assert outcome.responses == simulated().responses
    assert sum(outcome.events) == pytest.approx(sum(simulated().events), rel=0.001)


def test_same_seed_gives_the_same_day() -> None:
    assert simulated().events == simulated().events


def test_plan_grows_in_proportion() -> None:
    small, large = (CapacityPlan(Workload(requests), Costs()) for requests in (1e6, 1e8))
    assert large.kept_bytes_per_day == pytest.approx(100 * small.kept_bytes_per_day)
    rates = [plan.postgres_cores(plan.workload.peak_rate) for plan in (small, large)]
    assert rates[1] == pytest.approx(100 * rates[0])


def test_busiest_hour_of_a_profile_keeps_the_sum_of_the_day() -> None:
    assert sum(WORKLOAD.hourly_rates) * 3600 == pytest.approx(50_000)
    assert WORKLOAD.peak_rate / WORKLOAD.mean_rate == pytest.approx(12 / 154 * 24)
