"""Lease keeper: take-over, and heartbeats after a failure of the database."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from unittest.mock import patch
from uuid import uuid4

import psycopg
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import SimpleTestCase, TransactionTestCase
from django.utils import timezone

from responses_app.engine_interface import GenerateRequest, Sampling
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Lease, Worker
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.rounds import Round, Rounds
from responses_app.runs.execute.run import Run, RunOptions
from responses_app.runs.recover.lease_keeper import DatabaseClock, LeaseKeeper
from responses_app.runs.recover.takeover import NullParser
from responses_app.store.cluster import leases
from responses_app.store.cluster.leases import WORKER_TIMEOUT_S
from responses_app.store.log.writer import LogWriter
from tests.support.protocol.response_strategies import counted, response
from tests.support.store.connection_loss import cut, place
from tests.support.store.log_records import frame, log
from tests.support.waiting import eventually


async def adopt_nothing(pk: int) -> None:
    """Ignore the lease of the response `pk`."""


class CountedRun(Run):
    handovers = 0

    def hand_over(self) -> None:
        """Count a handover."""
        self.handovers += 1


def run(uid: str, recorder: LogWriter) -> CountedRun:
    """A run whose row has a key, and no lease."""
    one = log(uid)
    one.row.pk = next(_keys)
    generation = Generation(ReplayEngine(), GenerateRequest(uid, (1,), Sampling(max_tokens=1)), str)
    output = ResponseOutput(Writer(response(id=uid), counted()), DurablePublisher(Broadcast(), recorder, one))
    return CountedRun(output, Rounds(Round(generation, NullParser(), 1), output), RunOptions())


_keys = itertools.count(1000)


class LeaseKeeperTest(TransactionTestCase):
    """Against the real database, whose connections can be cut."""

    def tearDown(self) -> None:
        connections.close_all()

    def beat(self) -> object:
        """Return the time of the last heartbeat, read on another connection: the keeper must repair its own."""
        with psycopg.connect(**place()) as link:
            return link.execute("SELECT max(heartbeat_at) FROM responses_app_worker").fetchone()

    async def until_it_beats(self, after: object) -> None:
        """Wait for a heartbeat other than `after`."""

        async def has_beaten() -> bool:
            return await asyncio.to_thread(self.beat) != after

        await eventually(has_beaten, poll_s=0.05)

    async def test_a_new_process_takes_over_from_the_dead_at_once(self) -> None:
        row = log("resp_dead").row
        await row.asave()
        await Lease.objects.acreate(response=row, worker=uuid4(), model="m")
        taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def adopt(pk: int) -> None:
            taken.set_result(pk)

        keeper = LeaseKeeper(["m"], list, lambda: 0, lambda: True, adopt)
        try:
            self.assertEqual(await asyncio.wait_for(taken, WORKER_TIMEOUT_S / 2), row.pk)
        finally:
            await keeper.stop()

    async def test_take_over_without_an_end_is_tried_again(self) -> None:
        row = log("resp_stuck").row
        await row.asave()
        await Lease.objects.acreate(response=row, worker=uuid4(), model="m")
        tries = asyncio.Queue[int]()

        async def adopt(pk: int) -> None:
            await tries.put(pk)
            if tries.qsize() == 1:
                await asyncio.Event().wait()

        limit = patch("responses_app.runs.recover.lease_keeper.TAKEOVER_LIMIT_S", 0.1)
        with limit, self.assertLogs("responses.watch", "ERROR") as logs:
            keeper = LeaseKeeper(["m"], list, lambda: 0, lambda: True, adopt)
            try:
                await eventually(lambda: tries.qsize() > 1, poll_s=0.05)
            finally:
                await keeper.stop()
        self.assertIn(f"response {row.pk} was not taken over within", logs.output[0])

    async def test_worker_with_a_heartbeat_of_the_future_is_dead(self) -> None:
        dead, row = uuid4(), log("resp_future").row
        await row.asave()
        await Worker.objects.acreate(
            uid=dead, name="dead", served_models=["m"], heartbeat_at=timezone.now() + timedelta(days=1)
        )
        await Lease.objects.acreate(response=row, worker=dead, model="m")
        claimed = await sync_to_async(leases.claim)(uuid4(), ["m"], max_waiting=0, max_started=9, heartbeat_fresh=True)
        self.assertEqual(claimed, [row.pk])

    async def test_heartbeats_of_the_future_and_old_ones_are_purged(self) -> None:
        now = timezone.now()
        for name, age in {"alive": 0, "ahead": -86_400, "dead": 60, "forgotten": 2 * 86_400}.items():
            await Worker.objects.acreate(uid=uuid4(), name=name, heartbeat_at=now - timedelta(seconds=age))
        await sync_to_async(leases.purge_workers)()
        self.assertEqual({row.name async for row in Worker.objects.all()}, {"alive", "dead"})

    async def test_run_without_committed_events_is_not_lost(self) -> None:
        """Its rows have a key, although they were rolled back with those of another run, and are about to be written again."""
        recorder = LogWriter()
        opened, unopened = (run(f"resp_{number}", recorder) for number in range(2))
        opened.broadcast.frames = [frame(0)]
        keeper = LeaseKeeper(["m"], lambda: [opened, unopened], lambda: 0, lambda: True, adopt_nothing)
        try:
            await self.until_it_beats((None,))

            def was_handed_over() -> bool:
                keeper.wake()
                return opened.handovers > 0

            await eventually(was_handed_over, poll_s=0.05)
            self.assertEqual(unopened.handovers, 0)
        finally:
            await keeper.stop()
            await recorder.close()

    async def test_a_heart_that_missed_a_beat_goes_on_beating(self) -> None:
        with patch("responses_app.runs.recover.lease_keeper.BEAT", 0.2), self.assertLogs("responses.watch", "WARNING"):
            keeper = LeaseKeeper(["m"], list, lambda: 0, lambda: True, adopt_nothing)
            try:
                await self.until_it_beats((None,))
                await asyncio.to_thread(cut, place())
                await self.until_it_beats(await asyncio.to_thread(self.beat))
            finally:
                await keeper.stop()


class DatabaseClockTest(SimpleTestCase):
    """With times in place of clocks."""

    def test_jump_in_either_direction_is_noticed_once_and_logged(self) -> None:
        clock = DatabaseClock()
        times = [(1000.0, 0.0), (1001.5, 1.0), (87402.0, 2.0), (87403.0, 3.0), (1004.0, 4.0), (1005.0, 5.0)]
        with self.assertLogs("responses.watch", "WARNING") as lines:
            self.assertEqual([clock.has_jumped(at, now, now) for at, now in times], [False, False, True, False, True, False])
        self.assertIn("has jumped by 86400 s", lines.output[0])
        self.assertIn("has jumped by -86400 s", lines.output[1])

    def test_answer_that_a_busy_process_reads_late_is_not_logged_as_a_jump(self) -> None:
        clock = DatabaseClock()
        times = [(1000.0, 0.0, 4.0), (1005.0, 5.0, 5.0), (1006.0, 6.0, 10.0)]
        with self.assertNoLogs("responses.watch", "WARNING"):
            self.assertEqual([clock.has_jumped(*one) for one in times], [False, True, True])
