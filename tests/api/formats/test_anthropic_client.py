"""The anthropic package on `GET /v1/models`, in the form of Anthropic's API."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import httpx2
import orjson
from django.test import AsyncClient

from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import ApiCase


def connect(client: AsyncClient) -> Any:
    """Return an `AsyncAnthropic` whose requests `client` sends. The package is imported here, as the import takes two seconds of CPU."""

    async def send(request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name.startswith(("anthropic-", "x-api-key"))}
        path, kind = request.url.raw_path.decode(), request.headers.get("content-type", "")
        response: Any = await client.generic(request.method, path, await request.aread(), kind, headers=headers)
        content = b"".join([part async for part in response]) if response.streaming else response.content
        return httpx2.Response(response.status_code, headers=dict(response.headers), content=content)

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(send))
    return import_module("anthropic").AsyncAnthropic(api_key="x", base_url="http://test", max_retries=0, http_client=transport)


HEADERS = {"anthropic-version": "2023-06-01"}


class AnthropicModelsTest(ApiCase):
    """A server of the models a, b, c and d."""

    def new_hub(self) -> RunManager:
        return RunManager({name: ServedModel(name, self.engine, "", {}, dialect=self.dialect) for name in "abcd"})

    async def test_pages_in_both_directions(self) -> None:
        async with self.serving() as client:
            models = connect(client).models
            for ends in ({}, {"limit": 1}, {"limit": 3}, {"before_id": "d", "limit": 3}):
                names = [model.id async for model in models.list(**ends)]
                self.assertEqual("".join(names), "abc" if "before_id" in ends else "abcd")
            self.assertEqual([model.id async for model in models.list(before_id="d", limit=2)], ["b", "c", "a"])
            self.assertEqual([model.id async for model in models.list(after_id="b", limit=1)], ["c", "d"])

    async def test_pages_name_their_ends(self) -> None:
        pages: list[tuple[str, tuple[Any, ...]]] = [
            ("", (False, "a", "d")),
            ("?limit=2", (True, "a", "b")),
            ("?limit=2&after_id=b", (False, "c", "d")),
            ("?after_id=d", (False, None, None)),
            ("?before_id=c&limit=1", (True, "b", "b")),
            ("?before_id=c&limit=2", (False, "a", "b")),
        ]
        refusals = (
            ("?limit=0", 400, "limit"),
            ("?limit=1001", 400, "limit"),
            ("?after_id=x", 404, "after_id"),
            ("?before_id=x", 404, "before_id"),
            ("?after_id=a&before_id=c", 400, "before_id"),
        )
        async with self.serving() as client:
            for query, ends in pages:
                page = orjson.loads((await client.get(f"/v1/models{query}", headers=HEADERS)).content)
                self.assertEqual((page["has_more"], page["first_id"], page["last_id"]), ends, query)
            for query, status, path in refusals:
                response = await client.get(f"/v1/models{query}", headers=HEADERS)
                self.assertEqual(response.status_code, status, query)
                self.assertIn(path, orjson.loads(response.content)["error"]["message"])
