"""The watch of a process goes on when its database has been away."""

from __future__ import annotations

import asyncio
import itertools
from unittest.mock import patch
from uuid import uuid4

import psycopg
from django.db import connections
from django.test import TransactionTestCase

from responses_app.engine_interface import GenerateRequest, Sampling
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Lease
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.endings import RunEndings
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.runs.execute.rounds import Round, Rounds
from responses_app.runs.execute.run import Run
from responses_app.runs.recover.lease_keeper import LeaseKeeper
from responses_app.runs.recover.takeover import NullParser
from responses_app.store.cluster.leases import WORKER_TIMEOUT_S
from responses_app.store.log.writer import LogWriter
from tests.support.protocol.response_strategies import counted, response
from tests.support.store.connection_loss import cut, place
from tests.support.store.log_records import frame, log

LIMIT = 10.0


async def nobody(pk: int) -> None:
    """There is nothing to adopt."""


class Noted(Run):
    """A run that notes how often it is let go."""

    given = 0

    def hand_over(self) -> None:
        """It is another's."""
        self.given += 1


def run(uid: str, recorder: LogWriter) -> Noted:
    """A run whose row has a key, and no lease."""
    one = log(uid)
    one.row.pk = next(_keys)
    generation = Generation(ReplayEngine(), GenerateRequest(uid, (1,), Sampling(max_tokens=1)), str)
    output = ResponseOutput(Writer(response(id=uid), counted()), DurablePublisher(Broadcast(), recorder, one))
    rounds = Rounds(Round(generation, NullParser(), 1), output)
    return Noted(output, rounds, RunEndings(output, rounds.usage))


_keys = itertools.count(1000)


class WatchTest(TransactionTestCase):
    """Against the real database, whose connections can be cut."""

    def tearDown(self) -> None:
        connections.close_all()

    def beat(self) -> object:
        """When it has said last that it lives; asked on another connection, as the watch has to mend its own."""
        with psycopg.connect(**place()) as link:
            return link.execute("SELECT max(heartbeat_at) FROM responses_app_worker").fetchone()

    async def until_it_beats(self, after: object) -> None:
        """Wait for a heartbeat."""
        async with asyncio.timeout(LIMIT):
            while await asyncio.to_thread(self.beat) == after:
                await asyncio.sleep(0.05)

    async def test_a_new_process_takes_over_from_the_dead_at_once(self) -> None:
        row = log("resp_dead").row
        await row.asave()
        await Lease.objects.acreate(response=row, worker=uuid4(), model="m")
        taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def adopt(pk: int) -> None:
            taken.set_result(pk)

        watch = LeaseKeeper(["m"], list, lambda: 0, lambda: True, adopt)
        try:
            self.assertEqual(await asyncio.wait_for(taken, WORKER_TIMEOUT_S / 2), row.pk)
        finally:
            await watch.stop()

    async def test_run_without_committed_events_is_not_lost(self) -> None:
        """Its rows have a key, although they were rolled back with those of another run, and are about to be written again."""
        recorder = LogWriter()
        begun, waits = (run(f"resp_{number}", recorder) for number in range(2))
        begun.broadcast.frames = [frame(0)]
        watch = LeaseKeeper(["m"], lambda: [begun, waits], lambda: 0, lambda: True, nobody)
        try:
            async with asyncio.timeout(LIMIT):
                while await asyncio.to_thread(self.beat) == (None,):
                    await asyncio.sleep(0.05)
                while not begun.given:
                    watch.wake()
                    await asyncio.sleep(0.05)
            self.assertEqual(waits.given, 0)
        finally:
            await watch.stop()
            await recorder.close()

    async def test_a_heart_that_missed_a_beat_goes_on_beating(self) -> None:
        with patch("responses_app.runs.recover.lease_keeper.BEAT", 0.2), self.assertLogs("responses.watch", "WARNING"):
            watch = LeaseKeeper(["m"], list, lambda: 0, lambda: True, nobody)
            try:
                await self.until_it_beats((None,))
                await asyncio.to_thread(cut, place())
                await self.until_it_beats(await asyncio.to_thread(self.beat))
            finally:
                await watch.stop()
