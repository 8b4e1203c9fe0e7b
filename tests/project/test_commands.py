"""Commands of bin/test for its arguments."""

from __future__ import annotations

import subprocess
import sys

import pytest

from responses_app.installation.data_dir import ROOT
from tests.run import LINTERS, commands_for


@pytest.mark.parametrize(
    ("arguments", "lints", "measures"),
    [
        ([], True, False),
        (["--fast"], True, False),
        (["--lane", "lint"], True, False),
        (["--lane", "fast"], False, True),
        (["--lane", "slow"], False, False),
        (["tests/protocol"], False, False),
    ],
)
def test_arguments_choose_linters_and_coverage(arguments: list[str], lints: bool, measures: bool) -> None:
    linters, commands = commands_for(arguments)
    assert linters == (LINTERS if lints else {})
    assert ("coverage" in commands) is measures
    assert any(word.startswith("--cov=") for word in commands.get("pytest", [])) is measures


def test_arguments_of_pytest_are_passed_on_alone() -> None:
    assert commands_for(["tests/protocol", "-x"])[1]["pytest"][-2:] == ["tests/protocol", "-x"]


def test_number_of_processes_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PROCESSES", "5")
    command = commands_for(["--lane", "engine"])[1]["pytest"]
    assert command[command.index("-n") + 1] == "5"


@pytest.mark.parametrize("module", ["tests.run", "responses_app.server"])
def test_program_is_imported_before_anything_is_installed(module: str) -> None:
    subprocess.run([sys.executable, "-S", "-c", f"import {module}"], cwd=ROOT, check=True)
