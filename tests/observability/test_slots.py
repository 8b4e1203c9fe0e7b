"""Slots: files of dead processes are used again, and their gauges are left out at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from responses_app.installation.data_dir import ROOT
from responses_app.observability import prometheus, slots

# Counts a take-over, and runs as many responses as the argument says, until stdin ends.
PROCESS = """
import sys
from pathlib import Path
from responses_app.observability import prometheus
prometheus.use_files(Path(sys.argv[1]))
observer = prometheus.PrometheusObserver(["m"])
observer.taken_over()
observer.runs_changed(int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def counting(folder: Path, runs: int) -> Iterator[subprocess.Popen[str]]:
    """Run a process that counts; killed at the end."""
    command = [sys.executable, "-c", PROCESS, str(folder), str(runs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def value(folder: Path, name: str) -> float:
    families = text_string_to_metric_families(prometheus.render(folder).decode())
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def test_counters_of_a_killed_process_stay_and_gauges_go(tmp_path: Path) -> None:
    with counting(tmp_path, 3):
        with counting(tmp_path, 4):
            assert value(tmp_path, "verbatim_in_flight") == 7
        assert value(tmp_path, "verbatim_in_flight") == 3
        assert value(tmp_path, "verbatim_takeovers_total") == 2
    assert value(tmp_path, "verbatim_in_flight") == 0


def test_files_do_not_grow_with_the_number_of_processes(tmp_path: Path) -> None:
    for count in range(1, 5):
        with counting(tmp_path, 1):
            assert value(tmp_path, "verbatim_in_flight") == 1
            assert value(tmp_path, "verbatim_takeovers_total") == count, "a process counts on where the last one was killed"
    assert {file.name.rpartition("_")[2] for file in tmp_path.glob("*.db")} == {"0.db"}


def test_server_begins_with_empty_counters_unless_a_process_counts(tmp_path: Path) -> None:
    slots.clear(tmp_path / "missing")
    with counting(tmp_path, 1):
        slots.clear(tmp_path)
        assert value(tmp_path, "verbatim_takeovers_total") == 1
    slots.clear(tmp_path)
    assert prometheus.render(tmp_path) == b""
