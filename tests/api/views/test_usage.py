"""Usage API: buckets in OpenAI's form, from rows that outlive the responses."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import override_settings
from openai.types.admin.organization import UsageCompletionsResponse, UsageCostsResponse

from project.model_limits import Price
from responses_app.models import ApiKey, UsageRecord
from responses_app.store.content.deletion import erase
from responses_app.store.limits import usage
from tests.support.api.case import HELLO, ApiCase, KeyedClient, record_text
from tests.support.waiting import eventually

PATH = "/v1/organization/usage/completions"


class UsageTest(ApiCase):
    """Usage of a project with a key."""

    async def report(self, client: KeyedClient, **parameters: Any) -> UsageCompletionsResponse:
        """Return the report, checked by the types of the client library."""
        answer = await client.get(PATH, {"start_time": int(time.time()) - 3600, **parameters})
        self.assertEqual(answer.status_code, 200, answer.content)
        return UsageCompletionsResponse.model_validate(orjson.loads(answer.content), strict=True)

    async def test_usage_of_stored_and_other_responses_outlives_these(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            made = await self.made(client)
            await self.made(client, store=False)

            async def has_both() -> bool:
                return await UsageRecord.objects.acount() == 2

            await eventually(has_both)
            self.assertTrue(await sync_to_async(erase)(self.key.project, made["id"]))
            page = await self.report(client, group_by=["model", "api_key_id"], bucket_width="1d")
            (result,) = [result for bucket in page.data for result in bucket.results]
            shown = result.model_dump()
            self.assertEqual((shown["model"], shown["api_key_id"], shown["project_id"]), ("m", str(self.key.pk), None))
            self.assertEqual((shown["num_model_requests"], shown["output_tokens"]), (2, 2 * made["usage"]["output_tokens"]))
            self.assertEqual(shown["input_tokens"], 2 * made["usage"]["input_tokens"])

    async def test_usage_is_of_no_batch_and_of_the_default_tier(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client)
            page = await self.report(client, group_by=["batch", "service_tier", "api_source"], batch="false")
            (result,) = [result.model_dump() for bucket in page.data for result in bucket.results]
            shown = [result[name] for name in ("batch", "service_tier", "api_source", "num_model_requests", "model")]
            self.assertEqual(shown, [False, "default", "unlabeled", 1, None])
            page = await self.report(client, batch="true")
            self.assertEqual([bucket.results for bucket in page.data if bucket.results], [])

    async def test_costs_have_the_form_and_the_groups_of_openai(self) -> None:
        prices, path = {"": Price(1000.0, 500.0, 2000.0)}, "/v1/organization/costs"
        with override_settings(RESPONSES_PRICES=prices, RESPONSES_CURRENCY="EUR"):
            async with self.serving(record_text(HELLO)) as client:
                used = (await self.made(client))["usage"]
                query: dict[str, Any] = {"start_time": int(time.time()) - 3600, "group_by[]": ["project_id", "line_item"]}
                answer = await client.get(path, query)
                page = UsageCostsResponse.model_validate(orjson.loads(answer.content), strict=True)
                (result,) = [result.model_dump() for bucket in page.data for result in bucket.results]
                cost = (used["input_tokens"] * 1000 + used["output_tokens"] * 2000) / 1e6
                self.assertEqual(result["object"], "organization.costs.result")
                self.assertEqual(result["amount"], {"currency": "eur", "value": cost})
                names = ("project_id", "line_item", "user_id", "api_key_id", "quantity")
                self.assertEqual([result[name] for name in names], [self.key.project, "m", None, None, None])
                other = orjson.loads((await client.get(path, {**query, "line_items[]": "other"})).content)
                self.assertEqual([bucket["results"] for bucket in other["data"] if bucket["results"]], [])
                self.refused(await client.get(path, {**query, "bucket_width": "1h"}), 400, "invalid_value", "bucket_width")
                self.refused(await client.get(path, {**query, "project_ids": "q"}), 403, "project_not_allowed", None)

    async def test_key_of_another_project_sees_nothing(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client)
            _, secret = await sync_to_async(ApiKey.make)("another")
            page = await self.report(KeyedClient(secret))
            self.assertEqual([bucket.results for bucket in page.data if bucket.results], [])
            parameters = {"start_time": "0", "project_ids": self.key.project}
            self.refused(await KeyedClient(secret).get(PATH, parameters), 403, "project_not_allowed", None)

    async def test_buckets_begin_and_end_with_the_range_and_have_what_is_between(self) -> None:
        day = datetime(2026, 2, 27, tzinfo=UTC)

        def fill() -> None:
            for hours in (5, 7, 24, 47, 48):
                row = usage.usage_row(self.key.project, None, None, "m", usage.Spent(10, 0, 1, 0, 0))
                row.start = day + timedelta(hours=hours)
                row.save()

        await sync_to_async(fill)()
        begin, end = (int((day + timedelta(hours=hours)).timestamp()) for hours in (6, 60))
        async with self.serving() as client:
            page = await self.report(client, start_time=begin, end_time=end, bucket_width="1d")
        midnights = [int((day + timedelta(days=days)).timestamp()) for days in (1, 2)]
        times = [(bucket.start_time, bucket.end_time) for bucket in page.data]
        self.assertEqual(times, [(begin, midnights[0]), (midnights[0], midnights[1]), (midnights[1], end)])
        requests = [[result.model_dump()["num_model_requests"] for result in bucket.results] for bucket in page.data]
        self.assertEqual(requests, [[1], [2], [1]])

    async def test_pages_follow_each_other_and_wrong_parameters_are_named(self) -> None:
        async with self.serving() as client:
            page = await self.report(client, bucket_width="1m", limit=40)
            self.assertEqual((len(page.data), page.has_more), (40, True))
            second = await self.report(client, bucket_width="1m", limit=40, page=page.next_page)
            self.assertEqual(second.data[0].start_time, page.data[-1].end_time)
            self.assertFalse(second.has_more)
            self.refused(await client.get(PATH), 400, "missing_required_parameter", "start_time")
            for name, value in (("group_by", "color"), ("bucket_width", "2h"), ("api_key_ids", "x")):
                self.refused(await client.get(f"{PATH}?start_time=0&{name}={value}"), 400, "invalid_value", name)
            self.assertEqual((await client.get(f"{PATH}?start_time=0&models=%00")).status_code, 200)

    async def test_merged_rows_have_the_same_sums(self) -> None:
        def fill_and_merge() -> list[tuple[int, int, int]]:
            now = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
            for age in (timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=4, seconds=57), timedelta(days=5)):
                row = usage.usage_row("p", None, None, "m", usage.Spent(10, 2, 5, 1, 7))
                row.start = now - age
                row.save()
            for _ in range(2):
                list(usage.merge(now))
            return list(UsageRecord.objects.order_by("start").values_list("seconds", "requests", "input_tokens"))

        self.assertEqual(await sync_to_async(fill_and_merge)(), [(3600, 1, 10), (60, 2, 20), (0, 1, 10)])
