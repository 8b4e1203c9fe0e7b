"""A test case with vector stores."""

from __future__ import annotations

from typing import Any

import orjson

from tests.support.api.case import ApiCase
from tests.support.store.vector_stores import search_in_test_thread

URL = "/v1/vector_stores"


class VectorStoreCase(ApiCase):
    """With calls that must succeed, and calls that may fail."""

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(search_in_test_thread())

    async def ask(self, client: Any, method: str, path: str = "", **body: Any) -> dict[str, Any]:
        """The answer, which is 200."""
        response = await self.call(client, method, path, **body)
        self.assertEqual(response.status_code, 200, response.content)
        decoded: dict[str, Any] = orjson.loads(response.content)
        return decoded

    async def call(self, client: Any, method: str, path: str = "", **body: Any) -> Any:
        """Any answer."""
        headers = {"OpenAI-Beta": "assistants=v2"}
        if method == "post":
            return await client.post(URL + path, orjson.dumps(body), content_type="application/json", headers=headers)
        return await getattr(client, method)(URL + path, headers=headers)
