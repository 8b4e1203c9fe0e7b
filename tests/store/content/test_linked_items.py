"""Items that a conversation links while their response is deleted."""

from __future__ import annotations

import asyncio

import psycopg
from django.db import connections
from django.test import TransactionTestCase

from responses_app.models import Conversation, ConversationItem, Item, Response
from responses_app.store.content import conversations, deletion
from responses_app.store.db import call_in_thread
from tests.support.store.connection_loss import place
from tests.support.store.conversation_items import LINK_SQL
from tests.support.store.lock_waits import FROM_WAITING
from tests.support.store.log_records import NOW
from tests.support.waiting import eventually

BODY = {"id": "msg_1", "type": "message"}


class LinkedItemTest(TransactionTestCase):
    """Against the real database, with transactions side by side."""

    def setUp(self) -> None:
        self.response = Response.objects.create(uid="resp_1", project="p", status="completed", created_at=NOW, ended_at=NOW)
        self.item = Item.objects.create(uid="msg_1", response=self.response, project="p", type="message", body="{}")
        self.conversation = Conversation.objects.create(uid="conv_1", project="p", created_at=NOW)

    def tearDown(self) -> None:
        connections.close_all()

    async def test_item_deleted_while_a_conversation_links_it_is_inserted_anew(self) -> None:
        with psycopg.connect(**place()) as other:
            other.execute("DELETE FROM responses_app_item")
            added = asyncio.ensure_future(call_in_thread(conversations.add, self.conversation, [BODY], {}))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING}").rowcount))
            other.commit()
            await added
        link = await ConversationItem.objects.select_related("item").aget()
        self.assertEqual(link.item.uid, "msg_1")
        self.assertNotEqual(link.item.pk, self.item.pk)

    async def test_item_linked_while_its_response_is_deleted_stays(self) -> None:
        with psycopg.connect(**place()) as other:
            other.execute(LINK_SQL)
            # The commit of a link locks the item.
            other.execute("SET CONSTRAINTS ALL IMMEDIATE")
            deleted = asyncio.ensure_future(call_in_thread(deletion.erase, "p", "resp_1"))
            await eventually(lambda: asyncio.to_thread(lambda: other.execute(f"SELECT {FROM_WAITING}").rowcount))
            other.commit()
            self.assertTrue(await deleted)
        self.assertFalse(await Response.objects.aexists())
        self.assertEqual([link.item_id async for link in ConversationItem.objects.all()], [self.item.pk])
