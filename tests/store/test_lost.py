"""The database goes away while a response is made: its connections are cut, and nothing of the log is lost or doubled."""

from __future__ import annotations

import asyncio

import psycopg
from django.db import connection, connections
from django.test import TransactionTestCase

from responses_app.store import replay
from responses_app.store.recorder import Recorder
from responses_app.store.records import Append
from tests.store.test_recorder import durable, frame, log

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def cut(parameters: dict[str, str]) -> None:
    """End every connection to the tests' database."""
    with psycopg.connect(**parameters) as own:
        own.execute(CUT)


class LostTest(TransactionTestCase):
    """Against the real database, with real commits."""

    def tearDown(self) -> None:
        connections.close_all()

    async def test_a_log_goes_on_behind_a_lost_connection(self) -> None:
        given = connection.settings_dict
        parameters = {"dbname": given["NAME"], "host": given["HOST"], "port": given["PORT"], "user": given["USER"]}
        recorder, one = Recorder(), log("resp_lost")
        self.assertIsNone(await durable(recorder, Append(one, [frame(0)], opens=True)))
        await asyncio.to_thread(cut, {**parameters, "password": given["PASSWORD"]})
        for number in (1, 2):
            self.assertIsNone(await durable(recorder, Append(one, [frame(number)])))
        self.assertEqual([kept.number for kept in await replay.frames(one.row.pk)], [0, 1, 2])
        await recorder.close()
