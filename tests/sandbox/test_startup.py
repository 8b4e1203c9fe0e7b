"""Startup code of containers: definitions for the code of models, and errors of the startup code."""

from __future__ import annotations

from pathlib import Path

import pytest

from responses_app.sandbox.base import SandboxUnavailable
from responses_app.sandbox.options import RunnerOptions
from tests.support.sandbox.runner import runner

STARTUP = """
print("noise")
open("/mnt/data/by_startup", "w").close()
def double(n):
    return n * 2
"""


def test_definitions_of_the_startup_code_are_known_to_the_code_and_its_output_is_not_shown(tmp_path: Path) -> None:
    with runner(tmp_path, RunnerOptions(startup_code=STARTUP)) as started:
        first, broken = started.run("a", "double(4)", "double()")
    assert (first.value, first.logs, first.files) == ("8", "", ())
    assert 'File "<code 2>", line 1' in (broken.error or "")


def test_startup_code_runs_again_in_an_interpreter_that_was_started_again(tmp_path: Path) -> None:
    with runner(tmp_path, RunnerOptions(startup_code=STARTUP)) as started:
        ended, again = started.run("a", "import os; os._exit(1)", "double(4)")
    assert (ended.was_killed, again.value) == (True, "8")


def test_container_works_without_the_rest_of_startup_code_that_raises(tmp_path: Path) -> None:
    with runner(tmp_path, RunnerOptions(startup_code="x = 3\n1 / 0\ny = 4")) as started:
        (result,) = started.run("a", "x, 'y' in globals()")
    assert result.value == "(3, False)"


def test_startup_code_that_ends_the_interpreter_is_an_error_with_the_name_of_the_setting(tmp_path: Path) -> None:
    with (
        runner(tmp_path, RunnerOptions(startup_code="import os; os._exit(1)")) as started,
        pytest.raises(SandboxUnavailable, match="RESPONSES_CONTAINER_STARTUP ended the interpreter"),
    ):
        started.run("a", "1")
