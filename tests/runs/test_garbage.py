"""Garbage is collected while the process has little to do, and not while streams run."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from responses_app.runs.garbage import MIN_OBJECTS, collect_if_idle


class Node:
    """Object that refers to itself, which only the garbage collector frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def _no_automatic_collection() -> Iterator[None]:
    gc.collect()
    thresholds = gc.get_threshold()
    gc.set_threshold(100 * MIN_OBJECTS, 100, 100)
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("_no_automatic_collection")
@pytest.mark.parametrize(("share", "is_collected"), [(0.0, True), (0.9, False)])
def test_cycles_are_freed_when_idle(share: float, is_collected: bool) -> None:
    cycle = weakref.ref(Node())
    live_lists: list[list[int]] = [[] for _ in range(2 * MIN_OBJECTS)]
    assert collect_if_idle(share) is is_collected
    assert (cycle() is None) is is_collected
    assert len(live_lists) == 2 * MIN_OBJECTS


@pytest.mark.usefixtures("_no_automatic_collection")
def test_few_new_objects_are_not_worth_a_collection() -> None:
    assert not collect_if_idle(0.0)
