"""A log that was sealed, or has lost its deltas, answers as it did before, or says why it cannot."""

from __future__ import annotations

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from responses_app.models import Event, Response
from responses_app.store.log.archive import archive_log
from responses_app.store.log.retention import erase_deltas
from tests.support.api.case import THOUGHT, ApiCase, record_text


class ArchivedLogsTest(ApiCase):
    """Against the real database, with a scripted engine."""

    async def bodies(self, client: AsyncClient, uid: str) -> list[bytes]:
        """Return the bodies of all addresses that read a response."""
        answers = []
        for address in (f"/{uid}", "", f"/{uid}/input_items"):
            answer = await client.get(f"/v1/responses{address}")
            self.assertEqual(answer.status_code, 200)
            answers.append(answer.content)
        return answers

    async def streamed(self, client: AsyncClient, uid: str, after: int = -1) -> bytes:
        """A replay, byte for byte."""
        query = f"&starting_after={after}" if after >= 0 else ""
        answer = await client.get(f"/v1/responses/{uid}?stream=true{query}")
        self.assertEqual(answer.status_code, 200)
        return b"".join([part async for part in answer.streaming_content])  # type: ignore[attr-defined]

    async def test_a_sealed_log_is_read_like_one_that_is_not(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            uid = (await self.made(client))["id"]
            row = await Response.objects.aget(uid=uid)
            before = await self.bodies(client, uid), [await self.streamed(client, uid, after) for after in (-1, 0, 5, 1000)]
            self.assertGreater(await sync_to_async(archive_log)(row.pk), 0)
            self.assertEqual(await Event.objects.acount(), 0)
            after = await self.bodies(client, uid), [await self.streamed(client, uid, after) for after in (-1, 0, 5, 1000)]
            self.assertEqual(after, before)
            child = await self.made(client, previous_response_id=uid)
            self.assertEqual(child["status"], "completed")
            self.assertEqual((await client.delete(f"/v1/responses/{uid}")).status_code, 200)
            self.refused(await client.get(f"/v1/responses/{uid}"), 404, None, None)

    async def test_without_its_deltas_it_is_read_as_json_and_not_as_a_stream(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            uid = (await self.made(client))["id"]
            row = await Response.objects.aget(uid=uid)
            before = await self.bodies(client, uid)
            await sync_to_async(archive_log)(row.pk)
            self.assertTrue(await sync_to_async(erase_deltas)([row.pk]))
            self.assertEqual(await self.bodies(client, uid), before)
            for query in ("", "&starting_after=3"):
                answer = await client.get(f"/v1/responses/{uid}?stream=true{query}")
                self.refused(answer, 400, "events_not_kept", "stream", "without 'stream'")
            self.assertEqual(orjson.loads(before[0])["status"], "completed")
