"""Counts of the lint step `tests.style` on a small tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.style import CHECKS, MAX_MODULES, Module, Places, read_modules, run

BAD = '''"""It is what they are."""
import random
from time import sleep
from tests.api.test_models import case

# As in \u00a73 of the list.
def test_it_works(found):
    told = found
    sleep(1)
'''


def places(name: str, *modules: Module) -> Places:
    return next(check for check in CHECKS if check.name.startswith(name)).find(modules)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("vague", 1),
        ("first lines", 1),
        ("private words as names", 1),
        ("empty names", 2),
        ("citations", 1),
        ("imports between tests", 1),
        ("folders of tests", 0),
        ("names of tests", 1),
        ("random", 1),
    ],
)
def test_each_fault_of_a_test_is_counted(name: str, count: int) -> None:
    assert len(places(name, Module("tests/api/test_bad.py", BAD))) == count


def test_pause_of_an_unlisted_test_is_counted() -> None:
    assert "api/test_bad.py" in places("pauses", Module("tests/api/test_bad.py", BAD))


def test_decorator_of_hypothesis_is_no_empty_name() -> None:
    text = "from hypothesis import given\n\n@given(1)\ndef test_numbers(number): ...\n"
    assert places("empty names", Module("tests/test_numbers.py", text)) == []
    assert len(places("empty names", Module("tests/test_numbers.py", text.replace("hypothesis", "cases")))) == 1


def test_private_words_in_texts_of_the_package_are_counted() -> None:
    assert len(places("private words in", Module("responses_app/page.py", 'TEXT = "Nobody was told."  # said once\n'))) == 2


def test_repeated_classes_large_folders_and_long_functions_are_counted() -> None:
    modules = [Module(f"bench/part/module_{number}.py", "class Load: ...\n") for number in range(MAX_MODULES + 1)]
    assert places("class names", *modules) == ["Load"]
    assert places("folders with", *modules) == [f"bench/part: {MAX_MODULES + 1} modules"]
    assert places("functions", Module("bench/long.py", "def work():\n" + "    print()\n" * 50)) == [
        "bench/long.py:1 work: 51 lines"
    ]


def test_folder_of_tests_without_a_package_is_counted() -> None:
    modules = [
        Module("tests/stone/__init__.py", ""),
        Module("tests/store/log/__init__.py", ""),
        Module("responses_app/store/log/a.py", ""),
    ]
    assert places("folders of tests", *modules) == ["stone"]


def test_count_over_its_limit_fails_and_lists_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text(BAD)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert not run(read_modules(tmp_path))
    assert "vague first lines: 100 % (limit" in capsys.readouterr().out
