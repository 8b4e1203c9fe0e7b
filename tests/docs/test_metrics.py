"""The table of metrics, the dashboard and the alerts name the metrics that the server has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml
from prometheus_client import CollectorRegistry, Histogram

from responses_app.observability.prometheus import PrometheusObserver
from tests.support.doc_tables import table_rows

ROOT: Final = Path(__file__).resolve().parents[2]
DASHBOARD: Final = ROOT / "deploy/grafana/verbatim.json"
ALERTS: Final = ROOT / "deploy/prometheus/alerts.yaml"
PROMTOOL: Final = shutil.which("promtool")
MISSING: Final = "there is no promtool; on Debian: apt-get install -y prometheus"


@cache
def metrics() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return type and labels of each metric, by the name in a query."""
    registry = CollectorRegistry()
    observer = PrometheusObserver([], registry)
    collectors = [value for value in vars(observer).values() if hasattr(value, "_labelnames")]
    table = {}
    for collector in collectors:
        kind = collector._type
        table[collector._name + ("_total" if kind == "counter" else "")] = kind, tuple(collector._labelnames)
    return table


def names_in(text: str) -> set[str]:
    """Return the metrics that queries name, without the endings of histograms."""
    histograms = {name for name, (kind, _) in metrics().items() if kind == Histogram._type}
    names = set(re.findall(r"\bverbatim_\w+", text))
    return {base if (base := re.sub(r"_(bucket|sum|count)$", "", name)) in histograms else name for name in names}


def test_table_has_each_metric_with_type_and_labels() -> None:
    rows = table_rows("operations/metrics.md", "## Table")
    documented = {name: (cells[0], tuple(re.findall(r"`(\w+)`", cells[1]))) for name, cells in rows.items()}
    assert documented == metrics()


def test_dashboard_shows_every_metric_and_no_other() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    assert names_in(queries) == set(metrics())


def test_alerts_name_metrics_that_exist_and_are_documented() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert names_in(" ".join(rule["expr"] for rule in rules)) <= set(metrics())
    assert {rule["alert"] for rule in rules} == set(table_rows("operations/metrics.md", "## Dashboard and alerts"))


def test_promtool_accepts_the_alerts() -> None:
    if PROMTOOL is None:
        pytest.skip(MISSING)
    checked = subprocess.run([PROMTOOL, "check", "rules", ALERTS], text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
