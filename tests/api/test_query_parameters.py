"""Query parameters that are empty, given twice or of no use: 400 that names the parameter, on every route that reads one."""

from __future__ import annotations

import orjson
from django.conf import settings

from tests.support.api.case import HELLO, ApiCase, record_text


class QueryParametersTest(ApiCase):
    """With a scripted engine."""

    async def test_an_empty_parameter_is_refused_on_every_route(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, metadata={"color": ""})
            created = await client.post(
                "/v1/conversations", b'{"items":[{"role":"user","content":"x"}]}', content_type="application/json"
            )
            thread = f"/v1/conversations/{orjson.loads(created.content)['id']}"
            item = orjson.loads((await client.get(f"{thread}/items")).content)["data"][0]["id"]
            response = f"/v1/responses/{made['id']}"
            paged = ("limit", "order", "after")
            for path, names in (
                ("/v1/responses", (*paged, "model", "status", "conversation", "created_after", "created_before")),
                (response, ("stream", "starting_after", "include_obfuscation", "include", "include[]")),
                (f"{response}?stream=true", ("starting_after", "include_obfuscation")),
                (f"{response}/input_items", (*paged, "include", "include[]")),
                (f"{thread}/items", (*paged, "include[]")),
                (f"{thread}/items/{item}", ("include", "include[]")),
            ):
                for name in names:
                    with self.subTest(path=path, name=name):
                        answer = await client.get(f"{path}{'&' if '?' in path else '?'}{name}=")
                        self.assertEqual(answer.status_code, 400, answer)
                        error = orjson.loads(answer.content)["error"]
                        self.assertEqual(error["param"], "include[0]" if "include" in name and "_" not in name else name)
                        self.assertIn(error["code"], ("invalid_type", "invalid_value"))
            added = await client.post(f"{thread}/items?include[]=", b'{"items":[]}', content_type="application/json")
            self.refused(added, 400, "invalid_value", "include[0]")
            # A value of metadata may be empty, and so may the filter for it.
            matches = orjson.loads((await client.get("/v1/responses?metadata[color]=")).content)["data"]
            self.assertEqual([one["id"] for one in matches], [made["id"]])

    async def test_a_parameter_is_given_once(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
            for query, name in (("limit=5&limit=x", "limit"), ("after=x&after=", "after"), ("order=asc&order=desc", "order")):
                for path in (f"/v1/responses/{uid}/input_items", "/v1/responses"):
                    self.refused(await client.get(f"{path}?{query}"), 400, "invalid_value", name, "2 times")
            twice = await client.get(f"/v1/responses/{uid}?stream=true&stream=false")
            self.refused(twice, 400, "invalid_value", "stream")

    async def test_before_is_refused_rather_than_overlooked(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
            page = f"/v1/responses/{uid}/input_items?before=msg_x"
            self.refused(await client.get(page), 400, "unsupported_parameter", "before", "'after'")

    async def test_too_many_parameters_are_refused(self) -> None:
        query = "&".join(f"x{number}=1" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1))
        async with self.serving() as client:
            for path in ("/v1/models", "/v1/responses", "/v1/conversations/conv_x/items"):
                with self.subTest(path=path):
                    self.refused(await client.get(f"{path}?{query}"), 400, None, None, "more than 1000 parameters")
