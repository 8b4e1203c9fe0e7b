"""The prefix cache of the engine is kept apart per project, on every way to the engine."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient, override_settings

from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest
from tests.support.api.case import HELLO, KeyedClient, record_text
from tests.support.api.websocket_case import SocketCase


def cache_salt(project: str, cache_key: str | None) -> str | None:
    return CreateRequest(project=project, key=None, model="m", input=(), cache_key=cache_key).cache_salt


def test_every_pair_of_names_has_a_salt_of_its_own() -> None:
    pairs = [("a", None), ("b", None), ("a", "c"), ("a/b", "c"), ("a", "b/c"), ("ac", None), ("", "a"), ("a\0c", None)]
    assert len({cache_salt(*pair) for pair in pairs}) == len(pairs)
    assert cache_salt("a", "") == cache_salt("a", None)
    assert cache_salt("a", "\ud800")


@override_settings(RESPONSES_SHARED_PREFIX_CACHE=True)
def test_an_operator_may_let_projects_share_it() -> None:
    assert cache_salt("a", None) is None
    assert cache_salt("a", "k") not in (None, cache_salt("b", "k"))


class CacheSaltTest(SocketCase):
    """Case with a scripted engine that remembers its prompts."""

    def salts(self) -> list[str | None]:
        return [request.cache_salt for request in (*self.engine.requests, *self.engine.prefilled)]

    async def other(self, project: str) -> AsyncClient:
        _, secret = await sync_to_async(ApiKey.make)(project)
        return KeyedClient(secret)

    async def test_projects_have_caches_of_their_own(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            await self.made(client)
            await self.made(client, background=False, prompt_cache_key="k")
            other = await self.other("other")
            await self.made(other)
            await self.made(other, prompt_cache_key="k")
        self.assertEqual(len({*self.salts()} - {None}), 4)

    async def test_compaction_and_later_turns_ask_with_the_salt_of_the_project(self) -> None:
        managed = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
        async with self.serving(*(record_text(HELLO) for _ in range(4))) as client:
            first = await self.made(client)
            await self.made(client, input="word " * 1100, previous_response_id=first["id"], **managed)
            body = orjson.dumps({"model": "m", "input": "Hi"})
            answer = await client.post("/v1/responses/compact", body, content_type="application/json")
            self.assertEqual(answer.status_code, 200, answer.content)
        self.assertEqual(self.salts(), [cache_salt(self.key.project, None)] * 4)

    async def test_a_prompt_that_is_only_read_has_the_same(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            warm: dict[str, Any] = await socket.create_response("Look.", generate=False)
            await socket.create_response("Go on.", previous_response_id=warm["id"])
        self.assertEqual(self.salts(), [cache_salt(self.key.project, None)] * 2)
