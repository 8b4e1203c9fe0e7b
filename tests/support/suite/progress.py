"""Progress of a run with several processes: a line with the tests that ended and the time that is left, and each failure at once."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import pytest

from tests.support.suite import file_seconds, slow_tests

INTERVAL_S = 10.0
SLOWEST = 12
# The first tests of each process start servers and engines. For the time that is left, so many seconds at the recorded speed count too.
USUAL_S = 180.0
# Name of a property (`record_property`) that the summary prints.
MEASURED = "measured"


class SuiteProgress:
    """Plugin of pytest in the process that distributes the tests to `processes`. `clock` returns seconds."""

    def __init__(
        self,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        processes: int = 1,
        record: bool = False,
    ) -> None:
        self.out = out or sys.stderr
        self.clock = clock
        self.record, self.processes = record, processes
        self.expected: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        self.processor_s: dict[str, float] = {}
        self.skipped: Counter[str] = Counter()
        self.measured: list[str] = []
        self.ended = self.failed = 0
        self.began = self.printed = clock()

    def collected(self, nodeids: Sequence[str]) -> None:
        """Take over the tests of the run."""
        if not self.expected:
            self.expected = file_seconds.expected(nodeids)
            self.left_s = self.total_s = sum(self.expected.values())
            self.began = self.printed = self.clock()

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.collected(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """Print no letter for a test: `pytest_runtest_logreport` prints failures."""
        if report.failed:
            return "failed" if report.when == "call" else "error", "", "FAILED"
        if report.skipped:
            return "skipped", "", ""
        return "passed" if report.when == "call" else "", "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = file_seconds.file_of(report.nodeid)
        self.seconds[file] = self.seconds.get(file, 0.0) + report.duration
        if report.failed:
            self.failed += 1
            self._print(f"FAILED {report.nodeid} ({report.when})")
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.when == "call":
            self._take_properties(report)
        if report.when == "teardown":
            self.ended += 1
            self.left_s -= self.expected.get(report.nodeid, 0.0)
            if self.clock() - self.printed >= INTERVAL_S:
                self.printed = self.clock()
                self._print(self.line())

    def _take_properties(self, report: pytest.TestReport) -> None:
        function = slow_tests.function_of(report.nodeid)
        for name, value in report.user_properties:
            if name == MEASURED:
                self.measured.append(str(value))
            if name == slow_tests.PROPERTY and isinstance(value, float):
                self.processor_s[function] = max(self.processor_s.get(function, 0.0), value)

    def line(self) -> str:
        """Return the number of tests that ended, the failures, the time so far and the time that is left."""
        taken = self.clock() - self.began
        done = self.total_s - self.left_s
        pace = (taken + USUAL_S) / (done + USUAL_S * self.processes)
        left = f", about {_minutes(pace * self.left_s)} left" if self.expected else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.ended:,} of {len(self.expected):,} tests{failed}, {_minutes(taken)}{left}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the slowest files, what tests have measured, and what was not tested."""
        terminalreporter.section("slowest files")
        for file, seconds in sorted(self.seconds.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            terminalreporter.write_line(f"{seconds:6.0f} s  {file}")
        for line in self.measured:
            terminalreporter.write_line(f"MEASURED: {line}")
        for reason, count in self.skipped.most_common():
            terminalreporter.write_line(f"NOT TESTED: {count} tests: {reason}")
        if self.record:
            file_seconds.write(self.seconds)
            slow_tests.write(self.processor_s)

    def _print(self, line: str) -> None:
        print(line, file=self.out, flush=True)


def _minutes(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
