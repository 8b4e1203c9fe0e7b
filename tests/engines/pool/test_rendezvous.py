"""Rendezvous hashing: stable without a name, evenly distributed, equal in every process."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from responses_app.engines.pool.member import ranking

NAMES = [f"http://gpu-{number}:8000" for number in range(8)]
KEYS = [f"resp_{number:032x}" for number in range(4000)]


@given(key=st.text(), gone=st.sampled_from(NAMES))
def test_order_of_the_other_names_stays_without_a_name(key: str, gone: str) -> None:
    left = [name for name in NAMES if name != gone]
    assert ranking(key, left) == [name for name in ranking(key, NAMES) if name != gone]


@given(key=st.text(), names=st.permutations(NAMES))
def test_order_does_not_depend_on_the_order_of_the_names(key: str, names: list[str]) -> None:
    assert ranking(key, names) == ranking(key, NAMES)


def test_keys_are_evenly_distributed() -> None:
    counts = Counter(ranking(key, NAMES)[0] for key in KEYS)
    # 500 for each name; the standard deviation is 21.
    assert all(400 < counts[name] < 600 for name in NAMES)


def test_keys_of_a_missing_name_are_spread_over_the_others() -> None:
    moved = Counter(ranking(key, NAMES)[1] for key in KEYS if ranking(key, NAMES)[0] == NAMES[0])
    assert set(moved) == set(NAMES[1:])


def test_ranking_is_the_same_in_every_process() -> None:
    assert [NAMES.index(name) for name in ranking("resp_1", NAMES)] == [4, 1, 6, 0, 2, 3, 5, 7]
