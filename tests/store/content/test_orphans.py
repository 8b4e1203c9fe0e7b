"""Deletion of items of deleted conversations: by a setting or by age, and never while a stored response needs the items."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.test import AsyncClient, override_settings
from django.utils import timezone

from responses_app.models import Conversation, Item
from responses_app.runs.maintenance import prune_due
from tests.support.api.case import HELLO, ApiCase, record_text

DAY = timedelta(days=1)


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


class OrphansTest(ApiCase):
    """Conversations over the API, with maintenance as every half minute."""

    async def conversation(self, client: AsyncClient, *texts: str) -> str:
        """A conversation with these messages."""
        body = orjson.dumps({"items": [message(text) for text in texts]})
        answer = await client.post("/v1/conversations", body, content_type="application/json")
        self.assertEqual(answer.status_code, 200, answer.content)
        return str(orjson.loads(answer.content)["id"])

    async def deleted(self, client: AsyncClient, path: str) -> None:
        self.assertEqual((await client.delete(path)).status_code, 200)

    async def remaining(self, later: timedelta = timedelta(0)) -> int:
        """Return the number of items after the upkeep of a later time."""
        await sync_to_async(lambda: list(prune_due(timezone.now() + later)))()
        return await Item.objects.acount()

    async def test_orphaned_items_stay_unless_configured_otherwise(self) -> None:
        async with self.serving() as client:
            await self.deleted(client, f"/v1/conversations/{await self.conversation(client, 'one', 'two')}")
            self.assertEqual(await self.remaining(1000 * DAY), 2)
            with override_settings(RESPONSES_KEEP_RESPONSES=DAY):
                self.assertEqual(await self.remaining(), 2)
                self.assertEqual(await self.remaining(2 * DAY), 0)

    @override_settings(RESPONSES_DELETE_CONVERSATION_ITEMS=True)
    async def test_by_the_setting_they_go_at_once_and_those_of_others_stay(self) -> None:
        async with self.serving() as client:
            other = await self.conversation(client, "three")
            await self.deleted(client, f"/v1/conversations/{await self.conversation(client, 'one', 'two')}")
            self.assertEqual(await self.remaining(), 1)
            listed = orjson.loads((await client.get(f"/v1/conversations/{other}/items")).content)["data"]
            await self.deleted(client, f"/v1/conversations/{other}/items/{listed[0]['id']}")
            self.assertEqual(await self.remaining(), 0)

    @override_settings(RESPONSES_DELETE_CONVERSATION_ITEMS=True)
    async def test_an_item_in_another_conversation_stays_there(self) -> None:
        async with self.serving() as client:
            first = await self.conversation(client, "shared", "own")
            listed = orjson.loads((await client.get(f"/v1/conversations/{first}/items?order=asc")).content)["data"]
            second = await self.conversation(client)
            body = orjson.dumps({"items": [listed[0]]})
            added = await client.post(f"/v1/conversations/{second}/items", body, content_type="application/json")
            self.assertEqual(added.status_code, 200, added.content)
            await self.deleted(client, f"/v1/conversations/{first}")
            self.assertEqual(await self.remaining(), 1)
            self.assertEqual(
                orjson.loads((await client.get(f"/v1/conversations/{second}/items")).content)["data"][0]["id"], listed[0]["id"]
            )

    @override_settings(RESPONSES_DELETE_CONVERSATION_ITEMS=True)
    async def test_items_of_a_stored_response_stay_until_its_deletion(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            uid = await self.conversation(client, "My name is Ada.")
            made = await self.made(client, conversation=uid, input="Hi")
            await self.deleted(client, f"/v1/conversations/{uid}")
            self.assertEqual(await self.remaining(), 3)
            again = await self.made(client, previous_response_id=made["id"], input="Who am I?")
            prompt = self.dialect.encoding.decode(list(self.engine.requests[-1].prompt))  # type: ignore[attr-defined]
            self.assertIn("My name is Ada.", prompt)
            listed = await client.get(f"/v1/responses/{again['id']}/input_items?order=asc")
            self.assertEqual(len(orjson.loads(listed.content)["data"]), 4)
            for one in (made, again):
                await self.deleted(client, f"/v1/responses/{one['id']}")
            self.assertEqual(await self.remaining(), 0)

    async def test_deletion_of_a_conversation_marks_no_item_of_a_history(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            conversation = await self.conversation(client, "one", "two")
            body = orjson.dumps({"model": "m", "input": "Hi", "conversation": conversation})
            self.assertEqual((await client.post("/v1/responses", body, content_type="application/json")).status_code, 200)
            added = orjson.dumps({"items": [message("three")]})
            path = f"/v1/conversations/{conversation}"
            self.assertEqual((await client.post(f"{path}/items", added, content_type="application/json")).status_code, 200)
            await self.deleted(client, path)
            marked = [body async for body in Item.objects.filter(orphaned_at__isnull=False).values_list("body", flat=True)]
            self.assertEqual(len(marked), 1)
            self.assertIn("three", marked[0])

    async def test_the_command_prunes_them_too(self) -> None:
        async with self.serving() as client:
            await self.deleted(client, f"/v1/conversations/{await self.conversation(client, 'one')}")

        def prune(*arguments: str) -> str:
            out = StringIO()
            call_command("prune", "--pause=0", *arguments, stdout=out)
            return out.getvalue()

        self.assertIn("items: kept", await sync_to_async(prune)())
        self.assertIn("items: up to 1 would be deleted", await sync_to_async(prune)("--items=0s", "--dry-run"))
        self.assertIn("items: 1 deleted", await sync_to_async(prune)("--items=0s"))
        self.assertEqual(await Item.objects.acount(), 0)
        self.assertEqual(await Conversation.objects.acount(), 0)
