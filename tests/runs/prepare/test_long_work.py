"""Long work of a project delays neither another project nor short work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from responses_app.runs.prepare import long_work
from tests.support.waiting import LIMIT_S, eventually, run_ready_tasks


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await body()

    asyncio.run(limited())


class WorkGate:
    """Function that sets `began` and waits for `may_end`."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        assert self.may_end.wait(LIMIT_S)
        return "done"


def test_long_jobs_of_a_project_queue_and_other_projects_pass() -> None:
    async def body() -> None:
        gates = [WorkGate() for _ in range(3)]
        jobs = [asyncio.create_task(long_work.run("a", True, gate)) for gate in gates]
        await eventually(gates[0].began.is_set)
        assert await long_work.run("b", True, lambda: 1) == 1
        assert await long_work.run("a", False, lambda: 2) == 2
        assert not gates[1].began.is_set()
        for gate in gates:
            gate.may_end.set()
        assert await asyncio.gather(*jobs) == ["done"] * 3

    run(body)


def test_an_exception_comes_back_and_the_next_one_runs() -> None:
    def fail() -> None:
        raise ValueError("a bad job")

    async def body() -> None:
        with pytest.raises(ValueError, match="a bad job"):
            await long_work.run("a", True, fail)
        assert await long_work.run("a", True, lambda: 1) == 1

    run(body)


def test_a_client_that_leaves_stops_its_job_which_keeps_the_place_until_it_has_ended() -> None:
    async def body() -> None:
        gate, next_one = WorkGate(), WorkGate()
        first = asyncio.create_task(long_work.run("a", True, gate, gate.may_end.set))
        await eventually(gate.began.is_set)
        second = asyncio.create_task(long_work.run("a", True, next_one))
        await run_ready_tasks()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        next_one.may_end.set()
        assert await second == "done"

    run(body)


def test_a_client_that_leaves_while_it_waits_changes_nothing() -> None:
    async def body() -> None:
        gate = WorkGate()
        first = asyncio.create_task(long_work.run("a", True, gate))
        await eventually(gate.began.is_set)
        waiting = asyncio.create_task(long_work.run("a", True, lambda: 1))
        await run_ready_tasks()
        waiting.cancel()
        gate.may_end.set()
        assert await first == "done"
        assert await long_work.run("a", True, lambda: 2) == 2

    run(body)


def test_many_parts_of_one_message_are_long_work_without_a_look_at_each() -> None:
    class Unread(dict[str, str]):
        """Part whose values are not read."""

        def values(self) -> Any:
            raise AssertionError("a part was read")

    message = {"type": "message", "role": "user", "content": [Unread()] * (long_work.LONG_PARTS + 1)}
    assert long_work.size_of([message], (), ()) is long_work.WorkSize.LONG
    assert long_work.has_many([{**message, "content": [{}] * long_work.LONG_PARTS}]) is False
    assert long_work.has_many([{"type": "message"}] * (long_work.LONG_ITEMS + 1))
