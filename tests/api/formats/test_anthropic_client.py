"""The anthropic package on `GET /v1/models`, in the form of Anthropic's API."""

from __future__ import annotations

from typing import Any

import orjson

from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import ApiCase
from tests.support.api_formats.anthropic_client import connect

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
