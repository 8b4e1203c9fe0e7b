"""A test case with a conversation."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api.case import ApiCase

URL = "/v1/conversations"


def user(text: str, **fields: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"type": "message", "role": "user", "content": text, **fields}


def texts(items: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the messages."""
    return [item["content"][0]["text"] for item in items]


class ConversationCase(ApiCase):
    """With calls that must succeed."""

    async def ask(self, client: Any, method: str, path: str, **body: Any) -> dict[str, Any]:
        """The answer, which is 200."""
        response = await self.call(client, method, path, **body)
        self.assertEqual(response.status_code, 200, response.content)
        decoded: dict[str, Any] = orjson.loads(response.content)
        return decoded

    async def call(self, client: Any, method: str, path: str, **body: Any) -> Any:
        """Any answer."""
        if method == "post":
            return await client.post(URL + path, orjson.dumps(body), content_type="application/json")
        return await getattr(client, method)(URL + path)

    async def listed(self, client: Any, uid: str, query: str = "order=asc&limit=100") -> list[dict[str, Any]]:
        """All items."""
        page = await self.ask(client, "get", f"/{uid}/items?{query}")
        data: list[dict[str, Any]] = page["data"]
        return data
