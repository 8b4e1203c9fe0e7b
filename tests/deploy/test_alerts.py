"""Evaluation of the alert rules by promtool, on time series of a healthy server and of one with a fault."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import yaml

from responses_app.observability.prometheus import COMMIT_S, DURATION_S, FIRST_TOKEN_S

ALERTS: Final = Path(__file__).resolve().parents[2] / "deploy/prometheus/alerts.yaml"
PROMTOOL: Final = shutil.which("promtool")
MISSING: Final = "there is no promtool; on Debian: apt-get install -y prometheus"
BUCKETS: Final = {
    "verbatim_time_to_first_token_seconds": FIRST_TOKEN_S,
    "verbatim_queue_seconds": DURATION_S,
    "verbatim_commit_seconds": COMMIT_S,
}
# Eight hours with a sample each minute.
SAMPLES: Final = 480
AT: Final = "8h"
JOB: Final = {"job": "verbatim", "instance": "host:9400"}
CHAT: Final = {"model": "chat"}
FILES: Final = {"part": "files"}
ENGINE: Final = {"model": "chat", "engine": "local"}

Labels: TypeAlias = Mapping[str, str]
Series: TypeAlias = dict[str, str]


def series(name: str, labels: Labels, values: str) -> Series:
    """Return a time series of the instance in promtool's form."""
    written = ",".join(f'{key}="{value}"' for key, value in {**JOB, **labels}.items())
    return {"series": f"{name}{{{written}}}", "values": values}


def counter(name: str, labels: Labels, per_minute: int) -> Series:
    """Return a counter that grows evenly."""
    return series(name, labels, f"0+{per_minute}x{SAMPLES}")


def gauge(name: str, labels: Labels, value: float) -> Series:
    """Return a gauge that stays."""
    return series(name, labels, f"{value}+0x{SAMPLES}")


def histogram(name: str, labels: Labels, seconds: float) -> list[Series]:
    """Return the buckets of the server's histogram that sees 60 values a minute, each of `seconds`."""
    bounds = {str(float(bound)): bound for bound in BUCKETS[name]} | {"+Inf": math.inf}
    return [counter(f"{name}_bucket", {**labels, "le": le}, 60 * (bound >= seconds)) for le, bound in bounds.items()]


def healthy() -> list[Series]:
    """Return the series of a server that answers, with a few failures of each kind."""
    return [
        gauge("up", {}, 1),
        gauge("verbatim_engine_up", ENGINE, 1),
        gauge("verbatim_part_up", FILES, 1),
        counter("verbatim_http_requests_total", {"endpoint": "responses", "code": "200"}, 1000),
        counter("verbatim_http_requests_total", {"endpoint": "responses", "code": "503"}, 10),
        counter("verbatim_http_requests_total", {"endpoint": "responses", "code": "429"}, 500),
        counter("verbatim_responses_total", {**CHAT, "status": "completed"}, 1000),
        counter("verbatim_responses_total", {**CHAT, "status": "failed"}, 10),
        *histogram("verbatim_time_to_first_token_seconds", CHAT, 4),
        *histogram("verbatim_queue_seconds", {}, 15),
        *histogram("verbatim_commit_seconds", {}, 0.2),
        counter("verbatim_takeovers_total", {}, 1),
        counter("verbatim_tool_calls_total", {"tool": "mcp", "outcome": "completed"}, 10),
        counter("verbatim_tool_calls_total", {"tool": "mcp", "outcome": "failed"}, 5),
        counter("verbatim_tool_calls_total", {"tool": "function", "outcome": "failed"}, 100),
        counter("verbatim_webhook_attempts_total", {"outcome": "accepted"}, 10),
        counter("verbatim_webhook_attempts_total", {"outcome": "failed"}, 5),
        counter("verbatim_embedding_requests_total", {"outcome": "completed"}, 10),
        counter("verbatim_embedding_requests_total", {"outcome": "failed"}, 5),
        gauge("verbatim_log_wait_seconds", {}, 100),
        series("verbatim_storage_bytes", {"kind": "free"}, f"1000000000000-1000000x{SAMPLES}"),
    ]


# Alert -> the series of its fault, and the labels of the alert.
FAULTS: Final[Mapping[str, tuple[list[Series], Labels]]] = {
    # The job of the documentation that reads the public port.
    "VerbatimDown": ([gauge("up", {"job": "verbatim-by-token"}, 0)], {**JOB, "job": "verbatim-by-token"}),
    "VerbatimEngineDown": ([gauge("verbatim_engine_up", ENGINE, 0)], {**JOB, **ENGINE}),
    "VerbatimPartDown": ([gauge("verbatim_part_up", FILES, 0)], {**JOB, **FILES}),
    "VerbatimServerErrors": (
        [counter("verbatim_http_requests_total", {"endpoint": "responses", "code": "503"}, 100)],
        {"instance": JOB["instance"]},
    ),
    "VerbatimFailedResponses": ([counter("verbatim_responses_total", {**CHAT, "status": "failed"}, 100)], CHAT),
    "VerbatimSlowFirstToken": (histogram("verbatim_time_to_first_token_seconds", CHAT, 20), CHAT),
    "VerbatimLongQueue": (histogram("verbatim_queue_seconds", {}, 45), {"instance": JOB["instance"]}),
    "VerbatimSlowCommits": (histogram("verbatim_commit_seconds", {}, 0.8), {"instance": JOB["instance"]}),
    "VerbatimTakeovers": ([counter("verbatim_takeovers_total", {}, 2)], {}),
    "VerbatimToolFailures": (
        [counter("verbatim_tool_calls_total", {"tool": "mcp", "outcome": "failed"}, 20)],
        {"tool": "mcp"},
    ),
    "VerbatimWebhookFailures": ([counter("verbatim_webhook_attempts_total", {"outcome": "failed"}, 20)], {}),
    "VerbatimEmbeddingFailures": ([counter("verbatim_embedding_requests_total", {"outcome": "failed"}, 20)], {}),
    "VerbatimLateArchiving": ([gauge("verbatim_log_wait_seconds", {}, 400)], {}),
    "VerbatimDiskFullSoon": (
        [series("verbatim_storage_bytes", {"kind": "free"}, f"1000000000000-1000000000x{SAMPLES}")],
        {**JOB, "kind": "free"},
    ),
}


def rules() -> dict[str, dict[str, Any]]:
    """Return the alert rules by name."""
    return {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}


def evaluated(fault: list[Series], expected: Mapping[str, Labels], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `promtool test rules` on the series of a healthy server with a fault, and the expected labels by alert."""
    by_name = {one["series"]: one for one in [*healthy(), *fault]}
    table = rules()
    tests = [
        {
            "eval_time": AT,
            "alertname": name,
            "exp_alerts": [{"exp_labels": {**rule["labels"], **expected[name]}}] if name in expected else [],
        }
        for name, rule in table.items()
    ]
    # Labels alone matter: the summaries are compared with nothing.
    bare = {"groups": [{"name": "verbatim", "rules": [{**rule, "annotations": {}} for rule in table.values()]}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(bare))
    case = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "10m",
        "tests": [{"interval": "1m", "input_series": [*by_name.values()], "alert_rule_test": tests}],
    }
    (folder / "case.yaml").write_text(yaml.safe_dump(case))
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, "test", "rules", "case.yaml"], cwd=folder, text=True, capture_output=True, check=False)


def test_each_alert_has_a_fault() -> None:
    assert set(FAULTS) == set(rules())


@pytest.mark.skipif(PROMTOOL is None, reason=MISSING)
def test_healthy_server_raises_no_alert(tmp_path: Path) -> None:
    done = evaluated([], {}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(PROMTOOL is None, reason=MISSING)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_raises_its_alert_alone(name: str, tmp_path: Path) -> None:
    fault, labels = FAULTS[name]
    done = evaluated(fault, {name: labels}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
