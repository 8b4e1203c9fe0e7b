"""The database goes away while a response is made: its connections are cut, and nothing of the log is lost or doubled."""

from __future__ import annotations

import asyncio
from functools import partial
from unittest.mock import patch
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import TransactionTestCase, override_settings
from django.test.utils import CaptureQueriesContext

from responses_app.models import Event, Lease
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.cluster import notify
from responses_app.store.db import WAIT_FOR_DISK_SQL
from responses_app.store.log import reader
from responses_app.store.log.group_commit import write
from responses_app.store.log.records import Append, Ending, Fenced, RequestRecord, ResponseLog, Route
from responses_app.store.log.writer import LogWriter
from tests.support.store.connection_loss import cut, place
from tests.support.store.log_records import NOW, durable, frame, log
from tests.support.waiting import eventually


class LostTest(TransactionTestCase):
    """Against the real database, with real commits."""

    def tearDown(self) -> None:
        connections.close_all()

    async def test_a_log_goes_on_behind_a_lost_connection(self) -> None:
        recorder, one = LogWriter(), log("resp_lost")
        self.assertIsNone(await durable(recorder, Append(one, [frame(0)], opens=True)))
        await asyncio.to_thread(cut, place())
        for number in (1, 2):
            self.assertIsNone(await durable(recorder, Append(one, [frame(number)])))
        self.assertEqual([event.number for event in await reader.frames(one.row.pk)], [0, 1, 2])
        await recorder.close()

    async def test_lost_database_costs_a_single_failed_connection(self) -> None:
        pool = connection.pool  # type: ignore[attr-defined]
        recorder, one = LogWriter(), log("resp_pool")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        for idle in [await asyncio.to_thread(pool.getconn) for _ in range(6)]:
            pool.putconn(idle)
        await asyncio.to_thread(cut, place())
        with self.assertLogs("responses.log", "WARNING") as logs:
            # An append on Django's connection.
            outputs = {"item_1": ModelOutput("output")}
            self.assertIsNone(await durable(recorder, Append(one, [frame(1)], tool_outputs=outputs)))
        self.assertEqual(len(logs.output), 1, logs.output)
        await recorder.close()

    async def test_loss_of_notifications_is_logged_once_and_so_is_their_return(self) -> None:
        attempts: list[object] = []

        async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            attempts.append(writer)
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"postgresql://127.0.0.1:{server.sockets[0].getsockname()[1]}/none?connect_timeout=3"
        with patch.object(notify, "RETRY_DELAY_S", 0.01), self.assertLogs("responses.signals", "INFO") as log:
            with override_settings(RESPONSES_LISTEN_DATABASE_URL=url):
                notifier = notify.Notifier(lambda _kind, _keys: None, 1)
                await eventually(lambda: len(attempts) > 3)
            await eventually(lambda: notifier.connected)
            await notifier.close()
        server.close()
        self.assertEqual(len(log.output), 2, log.output)
        self.assertIn("interrupted", log.output[0])
        self.assertIn("arrive again", log.output[1])

    async def test_events_lost_in_a_database_crash_are_written_again(self) -> None:
        recorder, one = LogWriter(), held("resp_crash")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        for number in range(1, 5):
            await durable(recorder, Append(one, [frame(number)], tokens=bytes([number])))
        before = [event async for event in Event.objects.order_by("number").values_list("number", "data", "packed", "tokens")]
        await Event.objects.filter(number__gte=2).adelete()
        self.assertIsNone(await durable(recorder, Append(one, [frame(5)])))
        again = [event async for event in Event.objects.order_by("number").values_list("number", "data", "packed", "tokens")]
        self.assertEqual((again[:-1], again[-1][0]), (before, 5))
        await recorder.close()

    async def test_nothing_is_written_again_into_a_log_that_is_anothers(self) -> None:
        recorder, one = LogWriter(), held("resp_other")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        for number in (1, 2):
            await durable(recorder, Append(one, [frame(number)]))
        await Event.objects.filter(number=2).adelete()
        await Lease.objects.aupdate(epoch=2)
        self.assertIsInstance(await durable(recorder, Append(one, [frame(3)])), Fenced)
        self.assertEqual([event.number for event in await reader.frames(one.row.pk)], [0, 1])
        await recorder.close()

    async def test_a_gap_that_is_older_than_what_is_remembered_stays_refused(self) -> None:
        recorder, one = LogWriter(), held("resp_gap")
        await durable(recorder, Append(one, [frame(0)], opens=True))
        await durable(recorder, Append(one, [frame(1)]))
        self.assertIsInstance(await durable(recorder, Append(one, [frame(3)])), Fenced)
        one.recent.clear()
        one.error = None
        await Event.objects.filter(number=1).adelete()
        self.assertIsInstance(await durable(recorder, Append(one, [frame(2)])), Fenced)
        await recorder.close()

    async def test_nothing_follows_on_what_was_refused(self) -> None:
        recorder, one, answers = LogWriter(), held("resp_two"), list[Exception | None]()
        await durable(recorder, Append(one, [frame(0)], opens=True))
        other = Append(one, [frame(1, delta="Somebody else was sooner.")])
        await sync_to_async(write)([other])
        # Both in one flush, and one later.
        for number in (1, 2):
            recorder.enqueue(partial(Append, one, [frame(number)]), answers.append, Route.EVENTS)
        answers.append(await durable(recorder, Append(one, [frame(3)])))
        answers.append(await durable(recorder, Append(one, [frame(2)], ending=Ending("cancelled", NOW))))
        self.assertEqual([type(answer) for answer in answers], [Fenced] * 4)
        self.assertEqual([event.data for event in await reader.frames(one.row.pk)][1:], [other.frames[0].data])
        await recorder.close()

    def test_acceptance_waits_for_the_disk(self) -> None:
        with CaptureQueriesContext(connection) as queries:
            write([Append(held("resp_disk"), [frame(0)], opens=True)])
        self.assertIn(WAIT_FOR_DISK_SQL, [query["sql"] for query in queries.captured_queries])


def held(uid: str) -> ResponseLog:
    """A log that this process has the lease of."""
    one = log(uid)
    one.request, one.worker = RequestRecord("{}", (), "m"), uuid4()
    return one
