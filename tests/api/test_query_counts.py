"""Number of database queries: independent of the length of a chain or of a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from responses_app.access import api_keys
from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import Conversation, ConversationItem, Direction, Item, Response
from responses_app.runs.ids import new_id
from tests.support.api.case import HELLO, ApiCase, record_text, tokens
from tests.support.waiting import eventually

TURNS = 200
MOST = 20
FOREVER = Recording([Delay(3600), Tokens(tokens(HELLO))], match=tokens("Wait"))

Request = Callable[[], Awaitable[Any]]


def earlier(project: str) -> list[Item]:
    """Create the items of earlier turns of a project."""
    made = []
    for turn in range(TURNS):
        for role, part in (("user", "input_text"), ("assistant", "output_text")):
            content = [{"type": part, "text": f"{role} {turn}", "annotations": [], "logprobs": []}]
            body: dict[str, Any] = {
                "type": "message",
                "id": new_id("msg_"),
                "role": role,
                "status": "completed",
                "content": content,
            }
            direction = Direction.INPUT if role == "user" else Direction.OUTPUT
            made.append(
                Item(uid=body["id"], project=project, direction=direction, type="message", body=orjson.dumps(body).decode())
            )
    return Item.objects.bulk_create(made)


def prolong(project: str, uid: str, conversation: str) -> None:
    """Put these turns before a response, and into a conversation."""
    items = earlier(project)
    Response.objects.filter(uid=uid).update(history=[item.pk for item in items])
    row = Conversation.objects.get(uid=conversation)
    ConversationItem.objects.bulk_create(ConversationItem(conversation=row, item=item, uid=item.uid) for item in items)


class QueriesTest(ApiCase):
    """With a scripted engine and the real database."""

    async def counted(self, request: Request) -> int:
        """Return the number of queries until the answer is complete and the run has left the hub."""
        running = set(self.hub.runs)
        async with self.queries() as queries:
            answer = await request()
            self.assertEqual(answer.status_code, 200, answer.content)
            await eventually(lambda: not set(self.hub.runs) - running)
        return len(queries)

    async def counts(self, client: AsyncClient, uid: str, thread: str) -> dict[str, int]:
        """Count queries for every address that reads or deletes responses."""
        continued: dict[str, Any] = {"previous_response_id": uid}

        def posted(path: str, **body: Any) -> Request:
            return lambda: client.post(path, orjson.dumps({"model": "m", **body}), content_type="application/json")

        child = await self.made(client, **continued)
        waiting = await self.made(client, input="Wait", background=True, **continued)
        requests: dict[str, Request] = {
            "create": posted("/v1/responses", input="Hi", **continued),
            "create unstored": posted("/v1/responses", input="Hi", store=False, **continued),
            "create in a conversation": posted("/v1/responses", input="Hi", conversation=thread),
            "input_tokens": posted("/v1/responses/input_tokens", input="Hi", **continued),
            "compact": posted("/v1/responses/compact", input="Hi", **continued),
            "retrieve": lambda: client.get(f"/v1/responses/{child['id']}"),
            "input_items": lambda: client.get(f"/v1/responses/{child['id']}/input_items?limit=5"),
            "items": lambda: client.get(f"/v1/conversations/{thread}/items?limit=5"),
            "cancel": lambda: client.post(f"/v1/responses/{waiting['id']}/cancel"),
            "delete": lambda: client.delete(f"/v1/responses/{child['id']}"),
        }
        return {name: await self.counted(request) for name, request in requests.items()}

    @mock.patch.object(api_keys, "CACHE_S", 3600.0)
    async def test_the_number_does_not_grow_with_what_was_before(self) -> None:
        self.engine._loop = True
        async with self.serving(FOREVER, record_text(HELLO)) as client:
            short = await self.made(client)
            first, second = [
                orjson.loads((await client.post("/v1/conversations", b"{}", content_type="application/json")).content)["id"]
                for _ in range(2)
            ]
            few = await self.counts(client, short["id"], first)
            long = await self.made(client)
            await sync_to_async(prolong)(self.key.project, long["id"], second)
            many = await self.counts(client, long["id"], second)
            self.assertIn("user 0", self.dialect.token_text(self.engine.requests[-1].prompt))
            self.assertEqual(few, many)
            self.assertEqual({name: count for name, count in few.items() if not 0 < count <= MOST}, {})
