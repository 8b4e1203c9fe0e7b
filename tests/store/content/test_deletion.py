"""Deletion keeps what later responses need, and nothing else."""

from __future__ import annotations

from asgiref.sync import async_to_sync, sync_to_async
from django.test import TestCase

from responses_app.models import Event, Item
from responses_app.store.content import history
from responses_app.store.content.deletion import erase
from responses_app.store.log.writer import LogWriter
from tests.support.store.response_chains import chain


class EraseTest(TestCase):
    """Against the real database."""

    async def test_descendants_of_a_deleted_response_keep_their_whole_context(self) -> None:
        recorder = LogWriter()
        await chain(recorder, "resp_a", "resp_b", "resp_c")
        self.assertTrue(await sync_to_async(erase)("p", "resp_b"))
        context = await history.context("p", "resp_c")
        assert context is not None
        ids = [item["id"] for item in context.items]
        self.assertEqual(ids, ["msg_resp_a", "msg_resp_a_out", "msg_resp_b", "msg_resp_b_out", "msg_resp_c", "msg_resp_c_out"])
        self.assertIsNone(await history.context("p", "resp_b"))
        self.assertEqual(await Event.objects.filter(response__uid="resp_b").acount(), 0)
        await recorder.close()

    async def test_the_last_deletion_of_a_thread_leaves_nothing(self) -> None:
        recorder = LogWriter()
        await chain(recorder, "resp_a", "resp_b")
        await sync_to_async(erase)("p", "resp_a")
        self.assertEqual(await Item.objects.acount(), 4)
        await sync_to_async(erase)("p", "resp_b")
        self.assertEqual(await Item.objects.acount(), 0)
        self.assertEqual(await Event.objects.acount(), 0)
        await recorder.close()

    async def test_erasure_does_not_touch_other_projects(self) -> None:
        recorder = LogWriter()
        await chain(recorder, "resp_a")
        self.assertFalse(await sync_to_async(erase)("q", "resp_a"))
        self.assertEqual(await Item.objects.acount(), 2)
        await recorder.close()

    def test_a_chain_is_read_in_two_queries(self) -> None:
        async def fill() -> None:
            recorder = LogWriter()
            await chain(recorder, *(f"resp_{n}" for n in range(12)))
            await recorder.close()

        async_to_sync(fill)()
        with self.assertNumQueries(2):
            context = async_to_sync(history.context)("p", "resp_11")
        assert context is not None
        self.assertEqual(len(context.items), 24)
