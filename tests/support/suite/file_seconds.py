"""Seconds of each file of tests, as the last run with `bin/test --record` took: the order of the files, and the time that is left.

A file that is not in `file_seconds.json` takes less than a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_suffix(".json")
SMALL_S = 1.0
# Of a test in a file that is not in the table.
TEST_S = 0.02
# The same without a table, for folders whose tests start processes, browsers or engines.
FOLDER_TEST_S = {
    "chaos": 1.3,
    "contract": 1.1,
    "engines": 1.0,
    "hosts": 3.0,
    "management": 0.6,
    "proportions": 3.0,
    "sandbox": 0.5,
    "server": 0.9,
    "web": 0.8,
}


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


@cache
def recorded() -> Mapping[str, float]:
    """Read the table."""
    table: dict[str, float] = json.loads(TABLE.read_text())
    return table


def expected(nodeids: Iterable[str]) -> dict[str, float]:
    """Return the seconds that each test takes: those of its file, in equal parts."""
    files: dict[str, list[str]] = {}
    for nodeid in nodeids:
        files.setdefault(file_of(nodeid), []).append(nodeid)
    table = recorded()
    return {
        test: table[file] / len(tests) if file in table else guess(file, has_table=bool(table))
        for file, tests in files.items()
        for test in tests
    }


def guess(file: str, *, has_table: bool) -> float:
    """Return the seconds of a test in a file that is not in the table."""
    return TEST_S if has_table else FOLDER_TEST_S.get(file.split("/")[1], TEST_S)


def write(seconds: Mapping[str, float]) -> None:
    """Replace the table by the seconds of a whole run."""
    table = {file: round(taken, 1) for file, taken in sorted(seconds.items()) if taken >= SMALL_S}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
