"""The watch of a process goes on when its database has been away."""

from __future__ import annotations

import asyncio
from unittest.mock import patch
from uuid import uuid4

import psycopg
from django.db import connection, connections
from django.test import TransactionTestCase

from responses_app.models import Lease
from responses_app.runs.watch import DEAD_S, Watch
from tests.store.test_lost import cut
from tests.store.test_recorder import log

LIMIT = 10.0


async def nobody(pk: int) -> None:
    """There is nothing to adopt."""


class WatchTest(TransactionTestCase):
    """Against the real database, whose connections can be cut."""

    def setUp(self) -> None:
        given = connection.settings_dict
        self.place = {"dbname": given["NAME"], "host": given["HOST"], "port": given["PORT"], "user": given["USER"]}
        self.place["password"] = given["PASSWORD"]

    def tearDown(self) -> None:
        connections.close_all()

    def beat(self) -> object:
        """When it has said last that it lives; asked on another connection, as the watch has to mend its own."""
        with psycopg.connect(**self.place) as link:
            return link.execute("SELECT max(beat_at) FROM responses_app_worker").fetchone()

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

        watch = Watch(["m"], list, lambda: 0, lambda: True, adopt)
        try:
            self.assertEqual(await asyncio.wait_for(taken, DEAD_S / 2), row.pk)
        finally:
            await watch.stop()

    async def test_a_heart_that_missed_a_beat_goes_on_beating(self) -> None:
        with patch("responses_app.runs.watch.BEAT", 0.2), self.assertLogs("responses.watch", "WARNING"):
            watch = Watch(["m"], list, lambda: 0, lambda: True, nobody)
            try:
                await self.until_it_beats((None,))
                await asyncio.to_thread(cut, self.place)
                await self.until_it_beats(await asyncio.to_thread(self.beat))
            finally:
                await watch.stop()
