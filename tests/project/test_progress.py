"""Progress of bin/test: the line with the time that is left, failures at once, and what was not tested."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from responses_app.installation.data_dir import ROOT
from tests.support.suite import file_seconds, slow_tests
from tests.support.suite.file_seconds import FOLDER_TEST_S, TEST_S, expected, guess, recorded
from tests.support.suite.progress import INTERVAL_S, USUAL_S, SuiteProgress

TESTS = [f"tests/none.py::test_{number}" for number in range(100)]


class Summary:
    """Lines that a plugin writes at the end."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def report(
    nodeid: str,
    when: Literal["call", "teardown"],
    outcome: Literal["passed", "failed", "skipped"] = "passed",
    longrepr: Any = None,
    properties: list[tuple[str, object]] | None = None,
) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, outcome, longrepr, when, duration=0.5, user_properties=properties)


def test_line_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_seconds, "expected", lambda nodeids: dict.fromkeys(nodeids, 10.0))
    seconds, out = [0.0], io.StringIO()
    progress = SuiteProgress(out, lambda: seconds[0], processes=2)
    progress.collected(TESTS)
    assert (INTERVAL_S, USUAL_S) == (10, 180)
    # 1,000 s in two processes.
    assert progress.line() == "0 of 100 tests, 0:00, about 8:20 left"
    for nodeid in TESTS[:50]:
        seconds[0] += 5
        progress.pytest_runtest_logreport(report(nodeid, "call"))
        progress.pytest_runtest_logreport(report(nodeid, "teardown"))
    lines = out.getvalue().splitlines()
    assert (len(lines), lines[-1]) == (25, "50 of 100 tests, 4:10, about 4:10 left")
    for nodeid in TESTS[50:60]:
        seconds[0] += 200
        progress.pytest_runtest_logreport(report(nodeid, "teardown"))
    # The pace of the run counts more and more.
    assert out.getvalue().splitlines()[-1] == "60 of 100 tests, 37:30, about 16:52 left"


def test_failure_is_printed_at_once_and_counted() -> None:
    out = io.StringIO()
    progress = SuiteProgress(out, lambda: 0.0)
    progress.collected(TESTS)
    progress.pytest_runtest_logreport(report(TESTS[0], "call", "failed"))
    progress.pytest_runtest_logreport(report(TESTS[0], "teardown"))
    assert out.getvalue() == f"FAILED {TESTS[0]} (call)\n"
    assert progress.line().startswith("1 of 100 tests, 1 failed, 0:00")


def test_summary_names_what_was_not_tested() -> None:
    progress, summary = SuiteProgress(io.StringIO(), lambda: 0.0), Summary()
    for nodeid in TESTS[:3]:
        progress.pytest_runtest_logreport(report(nodeid, "call", "skipped", ("file.py", 3, "Skipped: there is no browser")))
    progress.pytest_terminal_summary(summary)
    assert summary.lines[-1] == "NOT TESTED: 3 tests: there is no browser"


def test_summary_has_measurements_once() -> None:
    progress, summary = SuiteProgress(io.StringIO(), lambda: 0.0), Summary()
    progress.collected(TESTS)
    for when in ("call", "teardown"):
        progress.pytest_runtest_logreport(report(TESTS[0], when, properties=[("measured", "3 s"), ("other", 1)]))
    progress.pytest_terminal_summary(summary)
    assert summary.lines[-1] == "MEASURED: 3 s"


def test_unknown_files_are_expected_to_be_quick() -> None:
    assert expected(TESTS) == dict.fromkeys(TESTS, TEST_S)


def test_tests_of_processes_are_expected_to_be_slow_without_a_table() -> None:
    assert guess("tests/server/http/test_new.py", has_table=False) > 10 * TEST_S
    assert guess("tests/server/http/test_new.py", has_table=True) == guess("tests/api/test_new.py", has_table=False) == TEST_S
    assert [folder for folder in FOLDER_TEST_S if not (ROOT / "tests" / folder).is_dir()] == []


def test_recorded_files_exist() -> None:
    assert [file for file in recorded() if not (ROOT / file).exists()] == [], "bin/test --record writes the table anew"


def test_slow_tests_are_those_with_slow_parameters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    progress = SuiteProgress(io.StringIO(), lambda: 0.0, record=True)
    monkeypatch.setattr(slow_tests, "SLOW_S", 0.2)
    for module in (file_seconds, slow_tests):
        monkeypatch.setattr(module, "TABLE", tmp_path / f"{module.__name__}.json")
    progress.collected(TESTS)
    for nodeid, seconds in (("a.py::test_a[1]", 0.1), ("a.py::test_a[2]", 0.3), ("a.py::test_b[1]", 0.19)):
        progress.pytest_runtest_logreport(report(nodeid, "call", properties=[(slow_tests.PROPERTY, seconds)]))
    progress.pytest_terminal_summary(Summary())
    assert json.loads(slow_tests.TABLE.read_text()) == ["a.py::test_a"]


def test_recorded_slow_tests_exist() -> None:
    recorded: list[str] = json.loads(slow_tests.TABLE.read_text())
    gone = [test for test in recorded if not (ROOT / file_seconds.file_of(test)).exists()]
    assert gone == [], "bin/test --record writes the table anew"
    assert all(slow_tests.is_slow(f"{test}[any]") for test in recorded)
