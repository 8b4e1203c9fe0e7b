"""Queue of starts: order, number per turn of the loop, requests that are cancelled while they wait."""

from __future__ import annotations

import asyncio

from responses_app.runs.start_queue import STARTS_PER_TURN, StartQueue
from tests.support.waiting import run_ready_tasks

COUNT = 3 * STARTS_PER_TURN + 1


def test_requests_begin_in_their_order_few_in_a_turn() -> None:
    async def main() -> tuple[list[int], list[int]]:
        queue, begun, turns = StartQueue(), list[int](), list[int]()

        async def start(number: int) -> None:
            await queue.wait()
            begun.append(number)

        tasks = [asyncio.create_task(start(number)) for number in range(COUNT)]
        while not all(task.done() for task in tasks):
            before = len(begun)
            await run_ready_tasks(1)
            turns.append(len(begun) - before)
        return begun, turns

    begun, turns = asyncio.run(main())
    assert begun == list(range(COUNT))
    assert max(turns) <= STARTS_PER_TURN


def test_a_request_on_an_idle_loop_does_not_wait() -> None:
    async def main() -> None:
        queue = StartQueue()
        for _ in range(2):
            for _ in range(STARTS_PER_TURN):
                waiting = queue.wait()
                try:
                    waiting.send(None)
                except StopIteration:
                    continue
                raise AssertionError("a request waits although the loop is idle")
            await run_ready_tasks()

    asyncio.run(main())


def test_a_cancelled_request_takes_no_place() -> None:
    async def main() -> None:
        queue = StartQueue()
        tasks = [asyncio.create_task(queue.wait()) for _ in range(COUNT)]
        await run_ready_tasks(1)
        for task in tasks[STARTS_PER_TURN:-1]:
            task.cancel()
        async with asyncio.timeout(30):
            await tasks[-1]
            await queue.wait()

    asyncio.run(main())
