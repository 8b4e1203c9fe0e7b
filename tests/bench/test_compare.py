"""Figures, tables and commands of the comparison with vLLM's own endpoint, and the random model."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench.compare.burst import burst, bursts_table, describe_burst
from bench.compare.contenders import ComparedModel, our_command, vllm_command
from bench.compare.measurement import MeasurementPlan, Sample, requests_of, sample
from bench.compare.random_model import WIDTH, build_random_model
from bench.compare.report import describe, figures_table, ratio, ratios_table
from bench.support.load import Load
from bench.support.quantiles import Spread, quantile
from bench.support.stream_client import StreamResult


def made(kind: str, streams: int, rate: float) -> Sample:
    """Make a sample."""
    cpu_us = {"engine": 1.0, "front": 2.0, "postgres": 3.0, "client": 4.0}
    return Sample(kind, streams, 128, rate, 10.0, 20.0, 15.0, 25.0, 30.0, 1.0, 2.0, cpu_us)


SAMPLES = [
    *(made("vllm", 64, rate) for rate in (1000, 2000, 9000)),
    *(made("stored", 64, rate) for rate in (3000, 2500, 2600)),
    made("unstored", 64, 2600),
]


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.5, 3), (0.99, 4), (1, 4)])
def test_quantile_is_a_value_of_the_sequence(share: float, expected: float) -> None:
    assert quantile([4, 1, 3, 2], share) == expected


def test_quantile_of_nothing_is_not_a_number() -> None:
    assert math.isnan(quantile([], 0.5))


def test_spread_has_median_and_range() -> None:
    assert Spread.of([3, 1, 9]) == Spread(3, 1, 9)


def test_ratio_divides_medians() -> None:
    assert ratio(SAMPLES, "stored", "vllm", 64) == 1.3


def test_tables_have_a_row_for_each_kind_and_a_column_for_each_ratio() -> None:
    figures = figures_table(SAMPLES)
    assert figures[2] == "| 64 | vLLM's own | 2,000 (1,000 to 9,000) | 10 ms, 20 ms | 15 ms, 25 ms | 30 ms | 1, 2, 3, 4 |"
    assert len(figures) == 5
    assert ratios_table(SAMPLES) == [
        "| streams | stored / vllm | unstored / vllm | stored / unstored |",
        "|---|---|---|---|",
        "| 64 | 1.30 | 1.30 | 1.00 |",
    ]
    assert describe(SAMPLES[0]).startswith("  64 vllm ")


def test_sample_counts_tokens_by_usage_and_other_processes_as_front_end() -> None:
    streams = [StreamResult(0.0, 0.0, 0.25, 2.0, 6, 4, 10, "completed", [0.5, 0.75, 1.75], 0.75)]
    measured = sample(
        "stored", 1, Load(streams, 2.0, 0.001, [0.0]), {"engine": 0.01, "web": 0.02, "server": 0.01, "postgres": 0.005}
    )
    assert measured.visible_p50_ms == 750.0
    assert (measured.rate, measured.first_p50_ms, measured.gap_p99_ms, measured.events_per_token) == (5.0, 500.0, 1000.0, 0.6)
    assert measured.cpu_us == pytest.approx({"engine": 1000, "front": 3000, "postgres": 500, "client": 100})


def test_burst_counts_requests_and_cpu_per_request() -> None:
    streams = [StreamResult(0.0, 0.0, 0.25, 2.0, 6, 4, 16, "completed", [at, 1.75], 2 * at) for at in (0.5, 0.75)]
    measured = burst(
        "worker", Load(streams, 0.5, 0.002, [0.0]), {"engine": 0.02, "web": 0.004, "server": 0.002, "postgres": 0.001}
    )
    assert (measured.requests, measured.tokens, measured.rate, measured.first_p50_ms) == (2, 32, 4.0, 750.0)
    assert measured.cpu_ms == pytest.approx({"engine": 10, "front": 3, "postgres": 0.5, "client": 1})
    assert describe_burst(measured).startswith("burst 2 worker ")
    assert bursts_table([measured])[2:] == [
        "| 2 | this server, stored, engine in a worker | 4 | 750 ms, 750 ms | 1500 ms, 1500 ms | 10.00, 3.00, 0.50, 1.00 |"
    ]


def test_few_streams_get_more_requests() -> None:
    plan = MeasurementPlan((1, 64), 3, 3, 128)
    assert [requests_of(streams, plan) for streams in plan.levels] == [6, 192]


@pytest.mark.parametrize("on_gpu", [False, True])
def test_both_servers_get_the_same_engine_options(on_gpu: bool) -> None:
    model = ComparedModel("random-64", "/srv/random-64", ("qwen3", "hermes"), on_gpu, {"dtype": "float32"})
    theirs, our_options = " ".join(vllm_command(model, 1)), our_command(model, 2)[4]
    assert our_options.startswith("random-64=vllm:///srv/random-64?")
    for name, value in model.options.items():
        assert f"{name}={value}" in our_options
        assert f"--{name.replace('_', '-')}" in theirs
    assert ("--enforce-eager" in theirs) != on_gpu
    assert "--distributed-executor-backend" not in theirs
    assert ("--distributed-executor-backend" in vllm_command(model, 1, pausing=True)) != on_gpu


def test_random_model_generates_plain_words_only(tmp_path: Path) -> None:
    torch = pytest.importorskip("safetensors.torch")
    folder = build_random_model(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    head = torch.load_file(folder / "model.safetensors")["lm_head.weight"]
    assert config["hidden_size"] == WIDTH
    assert head.shape == (config["vocab_size"], WIDTH)
    assert not head[config["eos_token_id"]].any()
    assert 1500 < int(head.any(dim=1).sum()) < config["vocab_size"]
