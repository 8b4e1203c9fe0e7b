"""The watch of a process goes on when its database has been away."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import psycopg
from django.db import connection, connections
from django.test import TransactionTestCase

from responses_app.runs.watch import Watch
from tests.store.test_lost import cut

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

    async def test_a_heart_that_missed_a_beat_goes_on_beating(self) -> None:
        with patch("responses_app.runs.watch.BEAT", 0.2), self.assertLogs("responses.watch", "WARNING"):
            watch = Watch(["m"], list, lambda: 0, lambda: True, nobody)
            try:
                await self.until_it_beats((None,))
                await asyncio.to_thread(cut, self.place)
                await self.until_it_beats(await asyncio.to_thread(self.beat))
            finally:
                await watch.stop()
