"""Queue of starts: order, turns of projects, number per turn of the loop, requests that are cancelled while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project import asgi
from responses_app.runs import manager
from responses_app.runs.start_queue import CONTESTED_STARTS, RECENT_S, SHARED_STARTS, STARTS_PER_TURN, StartQueue
from tests.support.manual_clock import ManualClock
from tests.support.waiting import eventually, run_ready_tasks

COUNT = 3 * STARTS_PER_TURN + 1


class Starts:
    """Requests at a queue: `begun` has the projects in the order of their starts. A start stays in progress until `end`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue, self.begun = StartQueue(self.clock), list[str]()
        self._may_end, self._tasks = asyncio.Event(), list[asyncio.Task[None]]()

    async def add(self, *projects: str) -> list[asyncio.Task[None]]:
        """Add a request for each of `projects`, and let the loop run once."""
        tasks = [asyncio.create_task(self._start(project)) for project in projects]
        self._tasks += tasks
        await run_ready_tasks(1)
        return tasks

    async def end(self) -> None:
        """End all starts, those in progress and those to come, and wait for all requests."""
        self._may_end.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _start(self, project: str) -> None:
        async with self.queue.turn(project):
            self.begun.append(project)
            await self._may_end.wait()


async def begin_all(projects: Sequence[str]) -> tuple[list[int], list[int]]:
    """Begin a response for each of `projects`, whose start ends at once. Return the order and the numbers per turn of the loop."""
    queue, started, turns = StartQueue(), list[int](), list[int]()

    async def start(number: int) -> None:
        async with queue.turn(projects[number]):
            started.append(number)

    tasks = [asyncio.create_task(start(number)) for number in range(len(projects))]
    while not all(task.done() for task in tasks):
        before = len(started)
        await run_ready_tasks(1)
        turns.append(len(started) - before)
    return started, turns


def test_requests_of_a_project_begin_in_their_order_few_in_a_turn() -> None:
    started, turns = asyncio.run(begin_all(["busy"] * COUNT))
    assert started == list(range(COUNT))
    assert max(turns) <= STARTS_PER_TURN


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abcde"), min_size=STARTS_PER_TURN, max_size=60))
def test_no_project_waits_for_more_than_one_start_of_each_other_project(projects: list[str]) -> None:
    started, turns = asyncio.run(begin_all(projects))
    assert max(turns) <= STARTS_PER_TURN
    waited = [projects[number] for number in started[STARTS_PER_TURN:]]
    for project in set(projects):
        start_turns = [number for number in started if projects[number] == project]
        assert start_turns == sorted(start_turns)
        passed = list[str]()
        for name in waited[: len(waited) - waited[::-1].index(project)] if project in waited else ():
            passed = [] if name == project else [*passed, name]
            assert len(set(passed)) == len(passed)


def test_project_has_few_starts_in_progress_while_another_project_begins_responses() -> None:
    async def main() -> None:
        starts = Starts()
        async with starts.queue.turn("quiet"):
            await starts.add(*["busy"] * COUNT)
            await run_ready_tasks(20)
            assert starts.begun == ["busy"] * CONTESTED_STARTS
        await run_ready_tasks(20)
        assert starts.begun == ["busy"] * SHARED_STARTS
        await starts.add("quiet")
        await run_ready_tasks(20)
        assert starts.begun == [*["busy"] * SHARED_STARTS, "quiet"]
        await starts.end()
        assert len(starts.begun) == COUNT + 1

    asyncio.run(main())


def test_project_alone_has_as_many_starts_in_progress_as_it_wants() -> None:
    async def main() -> None:
        starts = Starts()
        async with starts.queue.turn("quiet"):
            pass
        await starts.clock.advance(RECENT_S)
        await starts.add(*["busy"] * COUNT)
        await run_ready_tasks(20)
        assert len(starts.begun) == COUNT
        await starts.end()

    asyncio.run(main())


def test_start_that_lasts_long_delays_no_other_start_of_its_project() -> None:
    async def main() -> None:
        starts = Starts()
        await starts.add("quiet", *["busy"] * COUNT)
        await eventually(lambda: len(starts.begun) == COUNT + 1)
        await starts.end()

    asyncio.run(main())


def test_start_of_a_short_response_ends_with_its_request() -> None:
    async def main() -> None:
        starts = Starts()
        await starts.add("quiet", *["busy"] * (CONTESTED_STARTS - 1))
        async with starts.queue.turn("busy"):
            await starts.add("busy")
            await run_ready_tasks()
            assert starts.begun == ["quiet", *["busy"] * (CONTESTED_STARTS - 1)]
        await run_ready_tasks(20)
        assert len(starts.begun) == CONTESTED_STARTS + 1
        await starts.end()

    asyncio.run(main())


def test_a_request_on_an_idle_loop_does_not_wait() -> None:
    async def main() -> None:
        queue = StartQueue()
        for _ in range(2):
            for _ in range(STARTS_PER_TURN):
                begin = queue.turn("busy").__aenter__()
                try:
                    begin.send(None)
                except StopIteration:
                    continue
                raise AssertionError("a request waits although the loop is idle")
            await run_ready_tasks()

    asyncio.run(main())


def test_a_cancelled_request_takes_no_place() -> None:
    async def main() -> None:
        starts = Starts()
        tasks = await starts.add("quiet", *["busy"] * COUNT)
        for task in tasks[STARTS_PER_TURN:-1]:
            task.cancel()
        await starts.end()
        assert starts.begun[-1] == "busy"
        assert len(starts.begun) < COUNT

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "path", "turns"),
    [
        ("POST", "/v1/responses", [True]),
        ("POST", "/v1/messages/", [True]),
        ("GET", "/v1/responses/resp_1", [False]),
        ("GET", "/openresponses/v1/models", [False]),
        ("POST", "/v1/files", []),
        ("GET", "/health", []),
        ("GET", "/metrics", []),
        ("GET", "/responses", []),
    ],
)
def test_requests_that_begin_responses_or_read_wait_for_a_turn(
    monkeypatch: pytest.MonkeyPatch, method: str, path: str, turns: list[bool]
) -> None:
    taken, handled = list[bool](), list[str]()

    @asynccontextmanager
    async def turn(_project: str, *, is_response: bool) -> AsyncIterator[None]:
        taken.append(is_response)
        yield

    async def handle(_policy: object, scope: dict[str, Any], _receive: object, _send: object) -> None:
        handled.append(scope["path"])

    async def nothing(*_arguments: object) -> None:
        pass

    monkeypatch.setattr(manager, "current", lambda: SimpleNamespace(starts=SimpleNamespace(turn=turn)))
    monkeypatch.setattr(asgi, "_handle", handle)
    asyncio.run(asgi.http({"type": "http", "method": method, "path": path, "headers": []}, nothing, nothing))
    assert (taken, handled) == (turns, [path])
