"""Shares of projects in a limited number of places: the last eighth, turns, waits and cancelled waits."""

from __future__ import annotations

import asyncio

import pytest

from responses_app.utils.shares import ProjectShares, ShareExceeded, reserved_places, shares_of
from tests.support.waiting import run_ready_tasks


def fill(shares: ProjectShares, project: str) -> int:
    """Take places until the project may take no other. Return how many it took."""
    count = 0
    while shares.may_take(project):
        shares.take(project)
        count += 1
    return count


@pytest.mark.parametrize(("places", "reserved"), [(1, 0), (2, 1), (4, 1), (8, 1), (16, 2), (512, 64)])
def test_project_leaves_the_last_eighth_to_others(places: int, reserved: int) -> None:
    shares = ProjectShares(places)
    assert reserved_places(places) == reserved
    assert (fill(shares, "busy"), fill(shares, "quiet")) == (places - reserved, reserved)
    assert not shares.has_free_place
    assert not shares.may_take("third")


def test_project_at_its_share_is_full_until_it_releases_a_place() -> None:
    shares = ProjectShares(3)
    fill(shares, "busy")
    shares.take("quiet")
    assert sorted(shares.full_projects()) == ["busy", "quiet"]
    shares.release("busy")
    assert shares.full_projects() == ["busy", "quiet"]
    shares.release("quiet")
    assert shares.full_projects() == []


def test_waiting_project_with_fewest_places_is_next_then_the_one_with_the_oldest_turn() -> None:
    async def main() -> None:
        shares, order, gate = ProjectShares(1), list[str](), asyncio.Event()

        async def work(project: str) -> None:
            async with shares.place(project):
                await gate.wait()
                order.append(project)

        async with asyncio.TaskGroup() as group:
            for project in ("busy", "busy", "busy", "quiet", "other"):
                group.create_task(work(project))
                await run_ready_tasks()
            gate.set()
        assert order == ["busy", "quiet", "other", "busy", "busy"]
        assert shares.has_free_place

    asyncio.run(main())


def test_wait_ends_with_an_error_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        shares = ProjectShares(1, max_waiting=1, wait_s=0.01)
        async with shares.place("a"):
            with pytest.raises(ShareExceeded):
                async with shares.place("b"):
                    pytest.fail("there is no place")
            waiting = asyncio.create_task(shares.place("b").__aenter__())
            await run_ready_tasks()
            with pytest.raises(ShareExceeded):
                await shares.place("b").__aenter__()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert shares.may_take("b")

    asyncio.run(main())


def test_cancelled_wait_that_got_a_place_gives_it_to_the_next() -> None:
    async def main() -> None:
        shares, got = ProjectShares(1), asyncio.Event()

        async def work(project: str) -> None:
            async with shares.place(project):
                got.set()

        holder = shares.place("a")
        await holder.__aenter__()
        first, second = asyncio.create_task(work("b")), asyncio.create_task(work("c"))
        await run_ready_tasks()
        await holder.__aexit__(None, None, None)
        first.cancel()
        await got.wait()
        await second
        assert first.cancelled()
        assert shares.has_free_place

    asyncio.run(main())


def test_release_between_a_cancellation_and_its_end_leaves_no_place_taken() -> None:
    async def main() -> None:
        shares = ProjectShares(1)
        holder = shares.place("a")
        await holder.__aenter__()
        waiting = [asyncio.create_task(shares.place("b").__aenter__()) for _ in range(2)]
        await run_ready_tasks()
        waiting[0].cancel()
        await holder.__aexit__(None, None, None)
        await waiting[1]
        assert waiting[0].cancelled()
        shares.release("b")
        assert shares.has_free_place

    asyncio.run(main())


def test_place_with_a_limit_of_time_is_free_before_the_end_of_the_work() -> None:
    async def main() -> None:
        shares, gate = ProjectShares(1), asyncio.Event()

        async def work() -> None:
            async with shares.place("a", hold_s=0.001):
                await gate.wait()

        task = asyncio.create_task(work())
        await run_ready_tasks()
        async with shares.place("b"):
            gate.set()
            await task
        assert shares.has_free_place

    asyncio.run(main())


def test_shares_of_an_event_loop_are_made_once() -> None:
    async def main() -> tuple[ProjectShares, ProjectShares]:
        return shares_of("name", 2), shares_of("name", 3)

    first, again = asyncio.run(main())
    assert first is again
    assert asyncio.run(main())[0] is not first
