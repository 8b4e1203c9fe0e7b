"""Base class of tests of Messages: requests, and answers that the anthropic package accepts."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import AsyncClient

from tests.support.api.case import ApiCase
from tests.support.api_formats import anthropic_types

HI = [{"role": "user", "content": "Hi"}]
PATH = "/v1/messages"
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}


def shown(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a body whose second message, after a call with the id `a`, has the blocks."""
    return {"messages": [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": blocks}]}


class MessagesCase(ApiCase):
    """Requests for messages."""

    max_tokens = 100

    async def send(self, client: AsyncClient, path: str = PATH, **body: Any) -> Any:
        """POST a body with the fields that every request has."""
        data = orjson.dumps({"model": "m", "max_tokens": self.max_tokens, "messages": HI, **body})
        return await client.post(path, data, content_type="application/json")

    async def message(self, client: AsyncClient, **body: Any) -> dict[str, Any]:
        """Return a message, which the anthropic package accepts."""
        response = await self.send(client, **body)
        self.assertEqual(response.status_code, 200, response.content)
        anthropic_types.validate("Message", response.content)
        made: dict[str, Any] = orjson.loads(response.content)
        return made

    async def events(self, client: AsyncClient, **body: Any) -> list[dict[str, Any]]:
        """Return the events of a stream, which the anthropic package accepts."""
        response = await self.send(client, stream=True, **body)
        self.assertEqual(response.status_code, 200, getattr(response, "content", b""))
        parts = [part async for part in response.streaming_content]
        blocks = b"".join(parts).split(b"\n\n")
        self.assertEqual(blocks[-1], b"")
        data = [block.partition(b"\ndata: ")[2] for block in blocks[:-1]]
        for one in data:
            anthropic_types.validate("RawMessageStreamEvent", one)
        return [orjson.loads(one) for one in data]
