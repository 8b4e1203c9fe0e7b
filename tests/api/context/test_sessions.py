"""Session of engine requests: equal for all turns of a chain, so that engines find the prefix in their cache."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import AsyncClient

from tests.support.api.case import HELLO, ApiCase, record_text


class SessionTest(ApiCase):
    """With a scripted engine, whose requests have the session."""

    async def session(self, client: AsyncClient, **body: Any) -> tuple[str, str]:
        """Return the id of a new response, and the session of the engine request."""
        made = await self.made(client, **body)
        return made["id"], self.engine.requests[-1].session

    async def test_a_chain_has_the_id_of_its_first_response(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            first, session = await self.session(client)
            self.assertEqual(session, first)
            second, session = await self.session(client, previous_response_id=first)
            self.assertEqual(session, first)
            self.assertEqual((await self.session(client, previous_response_id=second))[1], first)
            self.assertNotEqual((await self.session(client))[1], first)

    async def test_a_conversation_has_its_own_id(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            created = await client.post("/v1/conversations", orjson.dumps({}), content_type="application/json")
            uid = orjson.loads(created.content)["id"]
            for _ in range(2):
                self.assertEqual((await self.session(client, conversation=uid, prompt_cache_key="mine"))[1], uid)

    async def test_a_cache_key_comes_before_the_chain_and_is_not_shown(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first, session = await self.session(client, prompt_cache_key="mine\r\nx: ü")
            self.assertRegex(session, "^[0-9a-f]{64}$")
            again = await self.session(client, prompt_cache_key="mine\r\nx: ü", previous_response_id=first)
            self.assertEqual(again[1], session)
            self.assertEqual((await self.session(client, previous_response_id=first))[1], first)

    async def test_a_compaction_belongs_to_the_session_of_its_chain(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            first, _ = await self.session(client)
            body = orjson.dumps({"model": "m", "previous_response_id": first})
            compacted = await client.post("/v1/responses/compact", body, content_type="application/json")
            self.assertEqual(compacted.status_code, 200, compacted.content)
            self.assertEqual(self.engine.requests[-1].session, first)
