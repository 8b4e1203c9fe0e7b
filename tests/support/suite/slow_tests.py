"""Tests of the lane `slow` by their processor time in the last run with `bin/test --record`: `slow_tests.json` has their names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_suffix(".json")
# A test that takes longer is not for daily work: the whole lane fast should take less than 90 s on two cores.
SLOW_S = 0.05
# Name of the property of a test report that has the seconds.
PROPERTY = "processor_s"


def processor_s() -> float:
    """Return the processor time of this process and of its ended children, in seconds."""
    return sum(os.times()[:4])


def is_slow(nodeid: str) -> bool:
    """Check that a test, with any parameters, was slow."""
    return function_of(nodeid) in _recorded()


def function_of(nodeid: str) -> str:
    """Return the id of a test without its parameters."""
    return nodeid.partition("[")[0]


def write(seconds: Mapping[str, float]) -> None:
    """Replace the table. `seconds` has the processor time of the slowest parameters of each test by `function_of`."""
    TABLE.write_text(json.dumps(sorted(test for test, taken in seconds.items() if taken >= SLOW_S), indent=1) + "\n")


@cache
def _recorded() -> frozenset[str]:
    return frozenset(json.loads(TABLE.read_text()))
