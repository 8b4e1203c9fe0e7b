"""The list of responses: paged by key, filtered, and in as many queries for two as for twenty."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import ApiKey
from tests.support.api.case import HELLO, ApiCase, record_text, tokens

SILENT = Recording([Tokens(tokens("<|channel|>final<|message|>Once upon")), Delay(600)])


class ListingTest(ApiCase):
    """Against the real database, with a scripted engine."""

    async def make(self, client: AsyncClient, count: int = 1, **body: Any) -> list[dict[str, Any]]:
        """So many responses, oldest first."""
        made = []
        for _ in range(count):
            self.engine.add(record_text(HELLO))
            response = await self.post(client, **body)
            self.assertEqual(response.status_code, 200, response.content)
            made.append(orjson.loads(response.content))
        return made

    async def page(self, client: AsyncClient, query: str = "") -> dict[str, Any]:
        """A list, which is 200."""
        response = await client.get(f"/v1/responses?{query}")
        self.assertEqual(response.status_code, 200, response.content)
        page: dict[str, Any] = orjson.loads(response.content)
        return page

    async def test_pages_go_through_all_of_them_in_either_order(self) -> None:
        async with self.serving() as client:
            empty: dict[str, Any] = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
            self.assertEqual(await self.page(client), empty)
            made = await self.make(client, 5)
            await self.make(client, store=False)
            for order, expected in (("asc", made), ("desc", made[::-1])):
                with self.subTest(order=order):
                    seen: list[dict[str, Any]] = []
                    page: dict[str, Any] = {"has_more": True}
                    while page["has_more"]:
                        after = f"&after={page['last_id']}" if seen else ""
                        page = await self.page(client, f"limit=2&order={order}{after}")
                        seen += page["data"]
                        self.assertEqual((page["first_id"], page["last_id"]), (page["data"][0]["id"], page["data"][-1]["id"]))
                    self.assertEqual(seen, expected)
            self.assertEqual((await self.page(client))["data"], made[::-1])

    async def test_filters_narrow_it(self) -> None:
        async with self.serving() as client:
            [red] = await self.make(client, metadata={"colour": "red", "size": "1"})
            [blue] = await self.make(client, metadata={"colour": "blue"}, max_output_tokens=16)
            for query, expected in (
                ("metadata[colour]=red", [red]),
                ("metadata[colour]=red&metadata[size]=1", [red]),
                ("metadata[colour]=red&metadata[size]=2", []),
                ("status=completed", [blue, red]),
                ("status=failed", []),
                ("model=m", [blue, red]),
                ("model=n", []),
                (f"created_after={red['created_at']}", [blue, red]),
                (f"created_before={red['created_at']}", []),
                ("created_after=99999999999", []),
                ("conversation=conv_x", []),
                ("conversation=%00", []),
                ("model=%00", []),
                ("metadata[%00]=%00", []),
            ):
                with self.subTest(query=query):
                    self.assertEqual((await self.page(client, query))["data"], expected)

    async def test_running_response_is_listed_with_its_present_state(self) -> None:
        async with self.serving(SILENT) as client:
            queued = orjson.loads((await self.post(client, background=True)).content)
            [shown] = (await self.page(client))["data"]
            self.assertEqual(shown, orjson.loads((await client.get(f"/v1/responses/{queued['id']}")).content))
            self.assertIn(shown["status"], ("queued", "in_progress"))

    async def test_another_project_sees_nothing(self) -> None:
        async with self.serving() as client:
            [made] = await self.make(client)
            _, secret = await sync_to_async(ApiKey.make)("other")
            headers = {"Authorization": f"Bearer {secret}"}
            page = orjson.loads((await client.get("/v1/responses", headers=headers)).content)
            self.assertEqual(page["data"], [])
            self.refused(await client.get(f"/v1/responses?after={made['id']}", headers=headers), 404, None, "after")

    async def test_odd_queries_are_refused(self) -> None:
        async with self.serving() as client:
            for query, status, code, param in (
                ("limit=0", 400, "integer_below_min_value", "limit"),
                ("limit=101", 400, "integer_above_max_value", "limit"),
                ("order=up", 400, "invalid_value", "order"),
                ("status=done", 400, "invalid_value", "status"),
                ("created_after=x", 400, "invalid_type", "created_after"),
                ("created_before=9999999999999", 400, "integer_above_max_value", "created_before"),
                ("colour=red", 400, "unknown_parameter", "colour"),
                ("after=resp_x", 404, None, "after"),
                ("after=%00", 404, None, "after"),
            ):
                with self.subTest(query=query):
                    self.refused(await client.get(f"/v1/responses?{query}"), status, code, param)

    async def test_the_number_of_queries_does_not_grow(self) -> None:
        async with self.serving() as client:
            counts = []
            for count in (2, 8):
                await self.make(client, count)
                async with self.queries() as queries:
                    page = await self.page(client)
                counts.append((len(page["data"]), len(queries)))
            self.assertEqual([number for number, _ in counts], [2, 10])
            self.assertGreater(counts[0][1], 0)
            self.assertEqual(counts[0][1], counts[1][1])
