"""Transactions on the connection of the event loop: the same rows as by Django's connection, and nothing of a refused commit."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import psycopg
from django.db import IntegrityError, OperationalError, connections
from django.forms.models import model_to_dict
from django.test import TestCase, TransactionTestCase

from responses_app.models import Conversation, ConversationItem, Event, Item, Lease, Response, StoredRequest
from responses_app.store.content.conversations import ConversationDeleted, ConversationLocked
from responses_app.store.content.history import PreviousDeleted
from responses_app.store.db import call_in_thread
from responses_app.store.log import reader
from responses_app.store.log.group_commit import map_integrity_errors, write
from responses_app.store.log.records import Append, Ending, Fenced, RequestRecord, ResponseLog
from responses_app.store.log.rows.event_codec import packing
from responses_app.store.log.rows.transaction_connection import TransactionConnection
from tests.support.store.connection_loss import cut, place
from tests.support.store.conversation_items import LINK_SQL, add_item
from tests.support.store.lock_waits import FROM_WAITING, FROM_WAITING_FOR_EVENTS
from tests.support.store.log_records import NOW, USAGE, frame, log
from tests.support.store.stored_events import read_stored_events
from tests.support.waiting import eventually

TEXT = 'tab\t back\\slash \\N NUL\x00 quote" newline\n ünïcödé 🦕 \u2028'
WORKER = uuid4()
# A commit that waits for a row which another transaction has locked.
LOCKED = f"SELECT {FROM_WAITING} AND locktype IN ('transactionid', 'tuple')"


def opening(uid: str, conversation: int | None = None, *, waits: bool = False) -> Append:
    """Make the first append of a response with a request; `waits` leaves the response queued."""
    one = log(uid)
    one.input = [{"id": f"msg_{uid}", "type": "message", "content": TEXT}]
    one.request, one.worker = RequestRecord('{"a":1}', [7, 200_000], "m", -1, b"\x00secret"), None if waits else WORKER
    one.row.conversation_id = conversation
    one.row.status = "queued" if waits else "in_progress"
    return Append(one, [frame(0, delta=TEXT), frame(1)], opens=True, tokens=b"\x00\\\n\xff")


def ending(one: ResponseLog, number: int = 2, status: str = "completed") -> Append:
    """Make the last append of a response."""
    item = {"id": f"out_{one.row.uid}", "type": "message"}
    return Append(one, [frame(number)], ending=Ending(status, NOW, [item], USAGE))


def rows(uid: str) -> list[Any]:
    """Read all rows of a response, without keys that the database has chosen."""
    response = Response.objects.get(uid=uid)
    names = {"id", "response", "item", "thread", "conversation"}
    tables: list[Any] = [
        Item.objects.filter(response=response).order_by("pk"),
        Event.objects.filter(response=response).order_by("number"),
        Lease.objects.filter(pk=response.pk),
        StoredRequest.objects.filter(pk=response.pk),
        ConversationItem.objects.filter(item__response=response).order_by("pk"),
    ]
    stored_rows = [model_to_dict(response), *(model_to_dict(row) for table in tables for row in table)]
    return [{name: str(value).replace(uid, "UID") for name, value in row.items() if name not in names} for row in stored_rows]


class TransactionConnectionTest(TransactionTestCase):
    """Against the real database, with real commits."""

    def setUp(self) -> None:
        self.link = TransactionConnection()

    def tearDown(self) -> None:
        connections.close_all()

    async def test_rows_are_those_of_the_other_connection(self) -> None:
        one = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        other = await Conversation.objects.acreate(uid="conv_2", created_at=NOW)
        item = await add_item(one)
        await ConversationItem.objects.acreate(conversation=other, item=item, uid=item.uid)
        on_loop, in_thread = opening("resp_1", one.pk), opening("resp_2", other.pk)
        for changed in (on_loop, in_thread):
            changed.log.row.metadata, changed.log.row.history = {"k": "ü"}, [3, item.pk]
        self.assertTrue(await self.link.commit([on_loop, opening("resp_more")]))
        await call_in_thread(write, [in_thread])
        self.assertEqual(await call_in_thread(rows, "resp_1"), await call_in_thread(rows, "resp_2"))
        await self.link.commit([ending(on_loop.log)])
        await call_in_thread(write, [ending(in_thread.log)])
        self.assertEqual(await call_in_thread(rows, "resp_1"), await call_in_thread(rows, "resp_2"))
        self.assertEqual(await ConversationItem.objects.filter(conversation=one).acount(), 3)
        self.assertEqual(len([*on_loop.log.input_keys, *on_loop.log.output_keys]), 2)
        self.link.close()

    async def test_begin_and_end_in_a_single_append(self) -> None:
        one = opening("resp_1")
        one.ending = ending(one.log).ending
        await self.link.commit([one])
        self.assertEqual((await Response.objects.aget()).status, "completed")
        self.assertEqual(await reader.frames(one.log.row.pk), one.frames)
        self.assertFalse(await Lease.objects.aexists())
        self.link.close()

    async def test_queued_response_starts(self) -> None:
        one, other = opening("resp_1", waits=True), opening("resp_2", waits=True)
        await self.link.commit([one])
        self.assertTrue((await Lease.objects.aget()).waiting)
        # The other one starts in the append that opens.
        other.starts = True
        await self.link.commit([Append(one.log, [frame(2)], starts=True), other])
        self.assertEqual([row.status async for row in Response.objects.all()], ["in_progress"] * 2)
        self.assertEqual([row.waiting async for row in Lease.objects.all()], [False] * 2)
        self.link.close()

    async def test_large_commits_are_stored(self) -> None:
        one = opening("resp_1")
        one.frames = [frame(number, delta="x" * 1_000_000) for number in range(8)]
        await self.link.commit([one])
        self.assertEqual(await reader.frames(one.log.row.pk), one.frames)
        self.link.close()

    async def test_refused_commit_leaves_nothing_and_a_usable_connection(self) -> None:
        first = opening("resp_1")
        await self.link.commit([first])
        process = await self.backend()
        for refused in (opening("resp_1"), Append(first.log, [frame(0)], wait_for_disk=True), ending(first.log, number=5)):
            with self.assertRaises(IntegrityError):
                await self.link.commit([opening("resp_2"), refused])
        self.assertEqual(await Response.objects.acount(), 1)
        await self.link.commit([ending(first.log)])
        self.assertEqual(await self.backend(), process)
        self.assertEqual([one.number for one in await reader.frames(first.log.row.pk)], [0, 1, 2])
        self.link.close()

    async def test_a_lease_of_another_worker_refuses_the_end(self) -> None:
        one = opening("resp_1")
        await self.link.commit([one])
        await Lease.objects.aupdate(epoch=2)
        with self.assertRaises(Fenced), map_integrity_errors():
            await self.link.commit([ending(one.log)])
        self.assertEqual((await Response.objects.aget()).status, "in_progress")
        self.assertEqual(await Item.objects.filter(direction="output").acount(), 0)
        self.assertEqual(len(await reader.frames(one.log.row.pk)), 2)
        self.link.close()

    async def test_the_end_of_a_deleted_response_is_refused(self) -> None:
        one, other = opening("resp_1"), opening("resp_2")
        await self.link.commit([one, other])
        await Response.objects.filter(uid="resp_1").adelete()
        with self.assertRaises(Fenced), map_integrity_errors():
            await self.link.commit([ending(one.log), ending(other.log)])
        self.assertEqual((await Response.objects.aget()).status, "in_progress")
        self.link.close()

    async def test_conversation_deleted_meanwhile_gets_no_items(self) -> None:
        conversation = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        one = opening("resp_1", conversation.pk)
        await self.link.commit([one])
        await conversation.adelete()
        await self.link.commit([ending(one.log)])
        self.assertFalse(await ConversationItem.objects.aexists())
        self.link.close()

    async def test_conversation_that_changed_since_it_was_read_refuses_a_response(self) -> None:
        conversation = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        one = opening("resp_1", conversation.pk)
        await add_item(conversation)
        with self.assertRaises(ConversationLocked), map_integrity_errors():
            await self.link.commit([one])
        with self.assertRaises(ConversationLocked):
            await call_in_thread(write, [one])
        self.assertFalse(await Response.objects.aexists())
        self.link.close()

    async def test_addition_that_is_not_committed_yet_refuses_a_response(self) -> None:
        conversation = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        await Item.objects.acreate(uid="msg_1", direction="input", type="message", body="{}")
        with psycopg.connect(**place()) as other:
            other.execute("SELECT FROM responses_app_conversation FOR UPDATE")
            commit = asyncio.ensure_future(self.link.commit([opening("resp_1", conversation.pk)]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(LOCKED).rowcount))
            other.execute(LINK_SQL)
            other.commit()
            with self.assertRaises(ConversationLocked), map_integrity_errors():
                await commit
        self.link.close()

    async def test_conversation_deleted_since_it_was_read_refuses_a_response(self) -> None:
        conversation = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        one = opening("resp_1", conversation.pk)
        await conversation.adelete()
        with self.assertRaises(ConversationDeleted), map_integrity_errors():
            await self.link.commit([one])
        with self.assertRaises(ConversationDeleted):
            await call_in_thread(write, [one])
        self.assertFalse(await Response.objects.aexists())
        self.link.close()

    async def test_response_is_refused_behind_a_deleted_one(self) -> None:
        first, second = opening("resp_1"), opening("resp_2")
        await self.link.commit([first])
        await self.link.commit([ending(first.log)])
        second.log.row.previous_uid = "resp_1"
        second.log.row.history = [*first.log.input_keys, *first.log.output_keys]
        with psycopg.connect(**place()) as other:
            other.execute("SELECT FROM responses_app_response FOR UPDATE")
            commit = asyncio.ensure_future(self.link.commit([second]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(LOCKED).rowcount))
            for name in ("item", "event", "storedrequest", "response"):
                other.execute(f"DELETE FROM responses_app_{name}")  # noqa: S608
            other.commit()
            with self.assertRaises(PreviousDeleted), map_integrity_errors():
                await commit
        with self.assertRaises(PreviousDeleted):
            await call_in_thread(write, [second])
        self.assertFalse(await Response.objects.aexists())
        self.link.close()

    async def test_failed_response_adds_nothing_to_the_conversation(self) -> None:
        conversation = await Conversation.objects.acreate(uid="conv_1", created_at=NOW)
        one = opening("resp_1", conversation.pk)
        await self.link.commit([one])
        await self.link.commit([ending(one.log, status="failed")])
        self.assertFalse(await ConversationItem.objects.aexists())
        self.link.close()

    async def test_connection_lost_within_a_commit_is_an_error_of_the_commit(self) -> None:
        one = opening("resp_1")
        await self.link.commit([opening("resp_2")])
        with psycopg.connect(**place()) as other:
            other.execute("LOCK TABLE responses_app_event")
            commit = asyncio.ensure_future(self.link.commit([one]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
            other.execute(f"SELECT pg_terminate_backend(pid) {FROM_WAITING_FOR_EVENTS}")
            with self.assertRaises(OperationalError):
                await commit
        self.assertEqual(await Response.objects.acount(), 1)
        await self.link.commit([one])
        events = await read_stored_events(Event.objects.all())
        self.assertEqual(len(events), 4)
        self.link.close()

    async def test_connection_lost_between_commits_is_opened_again(self) -> None:
        one = opening("resp_1")
        await self.link.commit([one])
        await asyncio.to_thread(cut, place())
        # The loop may have noticed the loss before the commit, or notices the loss in the commit.
        try:
            await self.link.commit([ending(one.log)])
        except OperationalError:
            await self.link.commit([ending(one.log)])
        self.assertEqual((await Response.objects.aget()).status, "completed")
        self.link.close()

    async def test_cancelled_commit_closes_the_connection(self) -> None:
        await self.link.commit([opening("resp_2")])
        process = await self.backend()
        with psycopg.connect(**place()) as other:
            other.execute("LOCK TABLE responses_app_event")
            commit = asyncio.ensure_future(self.link.commit([opening("resp_1")]))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING_FOR_EVENTS}").rowcount))
            commit.cancel()
            await asyncio.wait([commit])
        await self.link.commit([opening("resp_3")])
        self.assertNotEqual(await self.backend(), process)
        # The cancelled commit may have been executed, as a commit whose reply is lost.
        uids = {uid async for uid in Response.objects.values_list("uid", flat=True)}
        self.assertEqual(uids | {"resp_1"}, {"resp_1", "resp_2", "resp_3"})
        self.link.close()

    async def test_commits_wait_for_the_disk(self) -> None:
        await self.link.commit([opening("resp_1")])
        inner: Any = self.link._connection
        inner.pgconn.exit_pipeline_mode()
        self.assertEqual(inner.execute("SHOW synchronous_commit").fetchone(), ("on",))
        self.link.close()

    async def backend(self) -> int:
        """Return the process id of the connection."""
        inner: Any = self.link._connection
        return int(inner.info.backend_pid)


class PackedTransactionConnectionTest(TransactionConnectionTest):
    """The same with packed events."""

    def setUp(self) -> None:
        super().setUp()
        packing.allowed = True


class InsideTransactionTest(TestCase):
    """Inside of a transaction of Django's connection."""

    async def test_rows_stay_in_the_transaction(self) -> None:
        self.assertFalse(await TransactionConnection().commit([opening("resp_1")]))
        self.assertEqual(await Response.objects.acount(), 0)
