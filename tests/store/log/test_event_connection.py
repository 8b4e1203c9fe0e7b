"""Connection of the event loop: events are stored exactly, and a lost or refused commit leaves a usable connection."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import psycopg
from django.db import IntegrityError, OperationalError, connections
from django.test import TestCase, TransactionTestCase
from psycopg.pq import ExecStatus

from responses_app.models import Event
from responses_app.store.log import reader
from responses_app.store.log.records import Append, ResponseLog
from responses_app.store.log.rows import loop_connection
from responses_app.store.log.rows.event_codec import packing
from responses_app.store.log.rows.event_connection import EventConnection
from tests.support.store.connection_loss import cut, place
from tests.support.store.lock_waits import FROM_WAITING_FOR_EVENTS
from tests.support.store.log_records import frame, log
from tests.support.store.stored_events import row_frames
from tests.support.waiting import LIMIT_S, eventually


class EventConnectionTest(TransactionTestCase):
    """Against the real database, with real commits."""

    def setUp(self) -> None:
        self.log: ResponseLog = log()
        self.log.row.save()

    def tearDown(self) -> None:
        connections.close_all()

    async def numbers(self) -> list[int]:
        """Read the numbers of the events in the database."""
        return [one.number for one in await reader.frames(self.log.row.pk)]

    async def test_stored_bytes_are_exact(self) -> None:
        link = EventConnection()
        frames = [frame(0, delta='tab\t back\\slash \\N NUL\x00 quote" newline\n ünïcödé 🦕 \u2028'), frame(1)]
        self.assertTrue(await link.commit([Append(self.log, frames, tokens=b"\x00\\\n\xff")]))
        self.assertEqual(await reader.frames(self.log.row.pk), frames)
        stored = [row async for row in Event.objects.order_by("number").values_list("tokens", flat=True)]
        # The last row of the append has the tokens.
        self.assertEqual(stored, [*[None] * (0 if packing.allowed else 1), b"\x00\\\n\xff"])
        link.close()

    async def test_commits_larger_than_every_buffer_are_stored(self) -> None:
        link = EventConnection()
        frames = [frame(number, delta="x" * 1_000_000) for number in range(8)]
        await link.commit([Append(self.log, frames)])
        self.assertEqual(await reader.frames(self.log.row.pk), frames)
        link.close()

    async def test_refused_commit_leaves_the_connection_usable(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        for number, constraint in ((0, "event_number"), (2, "event_contiguous")):
            with self.assertRaises(IntegrityError) as caught:
                await link.commit([Append(self.log, [frame(number)])])
            cause: Any = caught.exception.__cause__
            self.assertEqual(cause.diag.constraint_name, constraint)
        await link.commit([Append(self.log, [frame(1)])])
        self.assertEqual(await self.numbers(), [0, 1])
        link.close()

    async def test_commit_without_an_answer_is_no_success(self) -> None:
        with self.assertRaises(psycopg.OperationalError):
            EventConnection._check([], ExecStatus.COMMAND_OK)

    async def test_connection_lost_between_commits_is_opened_again(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        await asyncio.to_thread(cut, place())
        for number in (1, 2):
            # The loop may have noticed the loss before the commit, or notices the loss in the commit.
            try:
                await link.commit([Append(self.log, [frame(number)])])
            except OperationalError:
                await link.commit([Append(self.log, [frame(number)])])
        self.assertEqual(await self.numbers(), [0, 1, 2])
        link.close()

    async def test_connection_lost_within_a_commit_is_an_error_of_the_commit(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        with psycopg.connect(**place()) as other:
            other.execute("LOCK TABLE responses_app_event")
            commit = asyncio.ensure_future(link.commit([Append(self.log, [frame(1)])]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
            other.execute(f"SELECT pg_terminate_backend(pid) {FROM_WAITING_FOR_EVENTS}")
            with self.assertRaises(OperationalError):
                await commit
        await link.commit([Append(self.log, [frame(1)])])
        self.assertEqual(await self.numbers(), [0, 1])
        link.close()

    async def test_connection_whose_end_the_loop_does_not_report_is_an_error_of_the_commit(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        with psycopg.connect(**place()) as other, patch.object(loop_connection, "SILENCE_S", 0.1):
            other.execute("LOCK TABLE responses_app_event")
            commit = asyncio.ensure_future(link.commit([Append(self.log, [frame(1)])]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
            asyncio.get_running_loop().remove_reader(link._socket)
            other.execute(f"SELECT pg_terminate_backend(pid) {FROM_WAITING_FOR_EVENTS}")
            with self.assertRaises(OperationalError):
                await asyncio.wait_for(commit, LIMIT_S)
        await link.commit([Append(self.log, [frame(1)])])
        self.assertEqual(await self.numbers(), [0, 1])
        link.close()

    async def test_answer_that_the_loop_does_not_report_ends_the_commit(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        with patch.object(loop_connection, "SILENCE_S", 0.1):
            with psycopg.connect(**place()) as other:
                other.execute("LOCK TABLE responses_app_event")
                commit = asyncio.ensure_future(link.commit([Append(self.log, [frame(1)])]))
                await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
                asyncio.get_running_loop().remove_reader(link._socket)
            await asyncio.wait_for(commit, LIMIT_S)
        self.assertEqual(await self.numbers(), [0, 1])
        link.close()

    async def test_cancelled_commit_closes_the_connection(self) -> None:
        link = EventConnection()
        await link.commit([Append(self.log, [frame(0)])])
        with psycopg.connect(**place()) as other:
            other.execute("LOCK TABLE responses_app_event")
            commit = asyncio.ensure_future(link.commit([Append(self.log, [frame(1)])]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
            commit.cancel()
            await asyncio.wait([commit])
        # The cancelled commit may have been executed, as a commit whose reply is lost.
        await link.commit([Append(self.log, [frame(len(await self.numbers()))])])
        self.assertIn(await self.numbers(), ([0, 1], [0, 1, 2]))
        link.close()


class PackedEventConnectionTest(EventConnectionTest):
    """The same with packed events."""

    def setUp(self) -> None:
        super().setUp()
        packing.allowed = True

    async def test_events_of_an_append_share_a_row(self) -> None:
        link, others = EventConnection(), log("resp_other")
        await others.row.asave()
        text = {"delta": " the castle in the hills"}
        one, two = [frame(number, **text) for number in range(4)], [frame(0), frame(1)]
        await link.commit([Append(self.log, one[:3], tokens=b"abc"), Append(others, two)])
        await link.commit([Append(self.log, one[3:], tokens=b"d")])
        rows = [
            row
            async for row in Event.objects.order_by("response_id", "number").values_list("number", "events", "type", "tokens")
        ]
        self.assertEqual(rows, [(0, 3, "", b"abc"), (3, None, "", b"d"), (0, 2, "", None)])
        self.assertEqual((await reader.frames(self.log.row.pk), await reader.frames(others.row.pk)), (one, two))
        link.close()

    async def test_the_row_is_a_third_of_the_json(self) -> None:
        link = EventConnection()
        fields: dict[str, Any] = {"output_index": 0, "content_index": 0, "delta": " the castle", "logprobs": []}
        one = frame(0, item_id=f"msg_{'01a219c761d174308451bee5d2862de9be16be51b8cd134d'}", **fields)
        await link.commit([Append(self.log, [one])])
        stored = await Event.objects.aget()
        self.assertEqual((stored.data, row_frames(stored)), ("\n", [one]))
        self.assertLess(len(stored.packed or b"") / len(one.data), 0.4)
        link.close()


class TransactionTest(TestCase):
    """Inside of a transaction of Django's connection."""

    async def test_events_stay_in_the_transaction(self) -> None:
        self.assertFalse(await EventConnection().commit([Append(log(), [frame(0)])]))
        self.assertEqual(await Event.objects.acount(), 0)
