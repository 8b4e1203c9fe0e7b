"""Choice of an engine: sticky by session, within the limits of imbalance."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from responses_app.engines.pool.member import FACTOR, MARGIN, PoolMember, choose, ranking
from responses_app.engines.replay.engine import ReplayEngine

NAMES = [f"http://gpu-{number}:8000" for number in range(4)]


def members(*in_flight: int) -> list[PoolMember]:
    """Create members with so many requests in flight."""
    pool = [PoolMember(name, ReplayEngine()) for name in NAMES[: len(in_flight)]]
    for member, count in zip(pool, in_flight, strict=True):
        member.in_flight = count
    return pool


def chosen(pool: list[PoolMember], session: str) -> str:
    member = choose(pool, session)
    assert member is not None
    return member.name


def test_session_stays_with_its_engine_while_the_load_is_even() -> None:
    for session in map(str, range(50)):
        assert chosen(members(10, 10, 10, 10), session) == ranking(session, NAMES)[0]


def test_overloaded_engine_is_passed_over_for_the_next_in_order() -> None:
    session = "resp_1"
    first, second, *_ = ranking(session, NAMES)
    pool = members(0, 0, 0, 0)
    busy = next(member for member in pool if member.name == first)
    busy.in_flight = MARGIN
    assert chosen(pool, session) == first
    busy.in_flight = 2 * MARGIN
    assert chosen(pool, session) == second


def test_without_members_none_is_chosen() -> None:
    assert choose([], "resp_1") is None


@given(loads=st.lists(st.integers(0, 500), min_size=1, max_size=4), session=st.integers(0, 99).map(str))
def test_chosen_engine_is_within_the_bound(loads: list[int], session: str) -> None:
    pool = members(*loads)
    member = choose(pool, session)
    assert member is not None
    assert member.in_flight < FACTOR * (sum(loads) + 1) / len(loads) + MARGIN


def test_requests_of_a_single_session_are_bounded() -> None:
    pool = members(0, 0, 0, 0)
    for _ in range(400):
        member = choose(pool, "resp_1")
        assert member is not None
        member.in_flight += 1
    counts = Counter({member.name: member.in_flight for member in pool})
    assert max(counts.values()) <= FACTOR * 100 + MARGIN + 1
