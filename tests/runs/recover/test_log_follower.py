"""Log follower during a short and during a permanent failure of the database."""

from __future__ import annotations

import asyncio
from unittest.mock import patch
from uuid import uuid4

import psycopg
from django.db import OperationalError, connections
from django.test import TransactionTestCase

from responses_app.runs.recover.log_follower import LogFollower
from responses_app.store.db import check_connection
from responses_app.store.log.records import Append, Ending
from responses_app.store.log.writer import LogWriter
from tests.support.store.connection_loss import cut, place
from tests.support.store.log_records import NOW, durable, frame, log
from tests.support.waiting import LIMIT_S, eventually, run_ready_tasks


class LogFollowerTest(TransactionTestCase):
    """Against the real database, whose connections can be cut."""

    def tearDown(self) -> None:
        connections.close_all()

    async def test_a_follower_goes_on_behind_a_lost_connection(self) -> None:
        recorder, one = LogWriter(), log("resp_followed")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        follower = LogFollower(uuid4(), lambda: None, lambda pk: None, lambda pk: None)
        reconnection = patch("responses_app.runs.recover.log_follower.check_connection", wraps=check_connection)
        try:
            with reconnection as reconnect:
                batches = follower.follow(one.row.pk)
                seen = [*await anext(batches)]
                await asyncio.to_thread(cut, place())
                more = asyncio.ensure_future(anext(batches))
                await eventually(lambda: reconnect.called)
                await durable(recorder, Append(one, [frame(1, "response.completed")], ending=Ending("completed", NOW)))
                seen += await asyncio.wait_for(more, LIMIT_S)
                self.assertEqual([one.number for one in seen], [0, 1])
                self.assertEqual([batch async for batch in batches], [])
        finally:
            await follower.close()
            await recorder.close()

    async def test_a_read_that_waits_does_not_stop_the_heartbeat(self) -> None:
        recorder, one = LogWriter(), log("resp_quiet")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        follower = LogFollower(uuid4(), lambda: None, lambda pk: None, lambda pk: None)
        async with await psycopg.AsyncConnection.connect(**place()) as other:
            await other.execute("LOCK TABLE responses_app_response")
            batches = follower.follow(one.row.pk, pause=0.05)
            try:
                self.assertEqual([await anext(batches) for _ in range(3)], [(), (), ()])
                await other.rollback()
                while not (batch := await anext(batches)):
                    pass
                self.assertEqual([one.number for one in batch], [0])
            finally:
                await batches.aclose()
                await follower.close()
                await recorder.close()

    async def test_second_cancellation_of_a_wait_is_no_other_error(self) -> None:
        recorder, one = LogWriter(), log("resp_cancelled")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        follower = LogFollower(uuid4(), lambda: None, lambda pk: None, lambda pk: None)
        batches = follower.follow(one.row.pk, pause=0.2)
        try:
            # An empty batch: the follower waits for news of the log.
            while await anext(batches):
                pass
            waiting = asyncio.ensure_future(anext(batches))
            await run_ready_tasks()
            for _ in range(2):
                waiting.cancel()
                await run_ready_tasks()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
        finally:
            await batches.aclose()
            await follower.close()
            await recorder.close()

    async def test_a_follower_does_not_wait_for_ever(self) -> None:
        follower = LogFollower(uuid4(), lambda: None, lambda pk: None, lambda pk: None)
        gone = patch("responses_app.runs.recover.log_follower.reader.stored_pages", side_effect=OperationalError("gone"))
        try:
            with gone, patch("responses_app.runs.recover.log_follower.LOST_LIMIT", 0.3), self.assertRaises(OperationalError):
                async with asyncio.timeout(LIMIT_S):
                    async for _ in follower.follow(1):
                        pass
        finally:
            await follower.close()
