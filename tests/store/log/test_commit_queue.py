"""Commit queue: what waits is committed together, and later under load."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from django.test import SimpleTestCase

from responses_app.store.log.commit_queue import Batch, CommitQueue
from responses_app.store.log.records import Append
from tests.support.store.log_records import frame, log
from tests.support.waiting import LIMIT_S, run_ready_tasks

QUEUE = "responses_app.store.log.commit_queue"


class Commits:
    """Commits of a queue: the numbers of appends in each."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.queue = CommitQueue(self.commit)

    async def commit(self, batch: Batch) -> None:
        self.sizes.append(len(batch))
        for _, on_durable in batch:
            on_durable(None)

    def add(self, append: Append | None) -> asyncio.Future[Exception | None]:
        done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.queue.add(lambda: append, done.set_result)
        return done


def deltas(count: int = 1) -> Append:
    """Return an append with `count` frames."""
    return Append(log(), [frame(number) for number in range(count)])


class CommitQueueTest(SimpleTestCase):
    """Without a database."""

    async def check_delay(self, first: list[Append], sizes: list[int], **limits: Any) -> None:
        """Commit `first`, then add three appends in turn; `sizes` are the expected sizes of the commits."""
        commits = Commits()
        with patch.multiple(QUEUE, INTERVAL_FACTOR=1e9, **limits):
            async with asyncio.timeout(LIMIT_S):
                await asyncio.gather(*map(commits.add, first))
                await run_ready_tasks(10)
                added = []
                for _ in range(3):
                    added.append(commits.add(deltas()))
                    await run_ready_tasks(10)
                await asyncio.gather(*added)
                await commits.queue.close()
        self.assertEqual(commits.sizes, sizes)

    async def test_under_load_the_first_append_waits_for_those_that_follow(self) -> None:
        await self.check_delay([deltas(), deltas()], [2, 3], MAX_INTERVAL_S=0, GATHER_S=0.5)

    async def test_after_a_shared_commit_the_next_one_waits_for_more_appends(self) -> None:
        await self.check_delay([deltas(), deltas()], [2, 3], MAX_INTERVAL_S=0.5)

    async def test_after_many_events_of_one_run_the_next_commit_waits_for_more_of_these(self) -> None:
        await self.check_delay([deltas(9)], [1, 3], MAX_INTERVAL_S=0.5)

    async def test_lone_appends_are_not_delayed(self) -> None:
        await self.check_delay([deltas(8)], [1, 1, 1, 1], MAX_INTERVAL_S=60.0)

    async def test_an_append_that_cannot_be_taken_is_refused_alone(self) -> None:
        commits, refused = Commits(), list[Exception | None]()

        def fail() -> Append:
            raise ValueError

        commits.queue.add(fail, refused.append)
        self.assertIsNone(await commits.add(deltas()))
        self.assertEqual([type(error) for error in refused], [ValueError])
        await commits.queue.close()

    async def test_appends_that_have_moved_are_left_out(self) -> None:
        commits = Commits()
        moved = commits.add(None)
        await commits.add(deltas())
        await commits.queue.close()
        self.assertEqual((commits.sizes, moved.done()), ([1], False))

    async def test_an_unexpected_error_of_a_commit_refuses_its_appends_alone(self) -> None:
        commits = Commits()
        commit = commits.queue._commit

        async def fail(_batch: Batch) -> None:
            raise RuntimeError

        commits.queue._commit = fail
        async with asyncio.timeout(LIMIT_S):
            with self.assertLogs("responses.log", "ERROR"):
                self.assertIsInstance(await commits.add(deltas()), RuntimeError)
            commits.queue._commit = commit
            self.assertIsNone(await commits.add(deltas()))
            await commits.queue.close()

    async def test_a_failing_callback_delays_no_other_append(self) -> None:
        commits, calls = Commits(), list[Exception | None]()

        def fail(error: Exception | None) -> None:
            calls.append(error)
            raise RuntimeError

        async with asyncio.timeout(LIMIT_S):
            with self.assertLogs("responses.log", "ERROR"):
                commits.queue.add(deltas, fail)
                self.assertIsNone(await commits.add(deltas()))
            self.assertIsNone(await commits.add(deltas()))
            await commits.queue.close()
        self.assertEqual((commits.sizes, calls), ([2, 1], [None]))
