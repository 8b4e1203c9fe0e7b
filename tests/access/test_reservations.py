"""Limits of tokens, spend and tool calls of a key and a project: reserved before a response begins, and settled at its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import orjson
from asgiref.sync import sync_to_async
from django.db.models.functions import Now
from django.test import override_settings

from project.model_limits import Price
from responses_app.access import api_keys
from responses_app.models import ApiKey, LimitCounter, OpenReservation, Project, Response, UsageRecord
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.maintenance import usage_due
from responses_app.runs.server_tools import approvals
from responses_app.store.limits import counters, unstored
from responses_app.store.limits.counters import LimitLevel
from tests.support.api.case import HELLO, ApiCase, record_text
from tests.support.api.websocket_case import SocketCase
from tests.support.engines.held_engine import HeldEngine
from tests.support.waiting import eventually

MINUTE = "tokens per minute of "
PRICES: Mapping[str, Price] = {"": Price(1000.0, 500.0, 2000.0)}


class ReservationCase(ApiCase):
    """A key with limits."""

    async def used(self, name: str) -> int:
        """Return what a counter of the key has used."""
        return (await LimitCounter.objects.aget(name=f"{name} of key {self.key.pk}")).used

    async def use(self, tokens: int, name: str = "tokens per minute") -> None:
        """Set what counters have used in the window of now."""
        await LimitCounter.objects.filter(name__startswith=name).aupdate(used=tokens, recent=[tokens], start=Now())


class TokensTest(ReservationCase):
    """Tokens of a minute and of a day."""

    async def test_headers_show_the_reservation_and_the_end_settles_it(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        for store in (True, False):
            for stream in (True, False):
                with self.subTest(store=store, stream=stream):
                    await LimitCounter.objects.all().adelete()
                    async with self.serving(record_text(HELLO)) as client:
                        answer = await self.post(client, store=store, stream=stream, max_output_tokens=500)
                        self.assertEqual(answer["x-ratelimit-limit-tokens"], "10000")
                        self.assertLess(int(answer["x-ratelimit-remaining-tokens"]), 9_500)
                        self.assertTrue(0 <= float(answer["x-ratelimit-reset-tokens"][:-1]) <= 65)
                        body = (await self.read(answer))[-1]["response"] if stream else orjson.loads(answer.content)
                        self.assertEqual(await self.used("tokens per minute"), body["usage"]["total_tokens"])

    async def test_request_beyond_the_minute_is_refused_before_anything_is_stored(self) -> None:
        await self.limit(tokens_per_minute=1_000)
        async with self.serving(record_text(HELLO)) as client:
            self.assertEqual((await self.post(client, max_output_tokens=600)).status_code, 200)
            await self.use(900)
            for stream in (False, True):
                answer = await self.post(client, max_output_tokens=600, stream=stream)
                self.refused(answer, 429, "rate_limit_exceeded", None, "tokens per minute of this key: Limit 1000, Used 900")
                self.assertTrue(1 <= int(answer["Retry-After"]) <= 65)
                self.assertEqual(answer["x-ratelimit-remaining-tokens"], "100")
            too_large = await self.post(client, max_output_tokens=2_000)
            self.refused(too_large, 429, "rate_limit_exceeded", None, "Request too large")
            self.assertEqual(await self.used("tokens per minute"), 900)
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_day_is_a_quota(self) -> None:
        await self.limit(tokens_per_day=1_000, tokens_per_minute=50_000)
        async with self.serving(record_text(HELLO)) as client:
            self.assertEqual((await self.post(client, max_output_tokens=500)).status_code, 200)
            before = await self.used("tokens per minute")
            # The advice to set a smaller limit is given only where the prompt fits into what is left.
            for used, end in ((800, "Z. A smaller limit of output tokens reserves less."), (999, "Z.")):
                await LimitCounter.objects.filter(name__startswith="tokens per day").aupdate(used=used)
                answer = await self.post(client, max_output_tokens=500)
                self.refused(answer, 429, "insufficient_quota", None, "You exceeded the quota of tokens per day of this key")
                error = orjson.loads(answer.content)["error"]
                self.assertEqual(error["type"], "insufficient_quota")
                self.assertTrue(error["message"].endswith(end), error["message"])
                self.assertEqual(answer["x-should-retry"], "false")
            # A request that no day allows is not told to wait for the next one.
            too_large = await self.post(client, max_output_tokens=2_000)
            self.refused(too_large, 429, "insufficient_quota", None, "Request too large for tokens per day of this key")
            self.assertNotIn("renewed", orjson.loads(too_large.content)["error"]["message"])
            self.assertEqual(too_large["x-should-retry"], "false")
            # Nothing of the minute is reserved for a request that the day refuses.
            self.assertEqual(await self.used("tokens per minute"), before)

    async def test_request_without_a_number_reserves_a_default_and_not_the_context(self) -> None:
        await self.limit(tokens_per_minute=100_000)
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            answer = await self.post(client)
            self.assertTrue(100_000 - 4_300 < int(answer["x-ratelimit-remaining-tokens"]) < 100_000 - 4_096)
            # A limit below the default does not refuse every request.
            await self.limit(tokens_per_minute=1_000)
            await LimitCounter.objects.all().adelete()
            self.assertEqual((await self.post(client))["x-ratelimit-remaining-tokens"], "0")

    async def test_limits_of_the_project_count_too(self) -> None:
        await self.limit(tokens_per_minute=100_000)
        await Project.objects.acreate(name=self.key.project, tokens_per_minute=300)
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, max_output_tokens=64)
            self.assertEqual(answer["x-ratelimit-limit-tokens"], "300")
            await self.use(290, "tokens per minute of project")
            self.refused(await self.post(client), 429, "rate_limit_exceeded", None, "of this project")

    async def test_refused_and_cancelled_requests_give_their_reservation_back(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        self.engine = HeldEngine()
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, stream=True, store=False, max_output_tokens=5_000)
            run = next(iter(self.hub.runs.values()))
            await asyncio.to_thread(answer.close)
            await run.wait_terminal()

            async def is_settled() -> bool:
                return await self.used("tokens per minute") < 1_000

            await eventually(is_settled)
            refused = await self.post(client, max_output_tokens=100, temperature=9)
            self.assertEqual(refused.status_code, 400)
            self.assertLess(await self.used("tokens per minute"), 1_000)

    async def test_reservation_is_stored_with_the_request_so_that_another_process_settles_it(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, stream=True, max_output_tokens=500)
            row = await Response.objects.select_related("stored_request").aget()
            (charge,) = CreateRequest.load(row.stored_request.create_request, ()).charges
            self.assertEqual(charge.reserved, await self.used("tokens per minute"))
            engine.gate.set()
            await self.read(answer)

    async def test_reservation_without_a_log_is_given_back_when_its_process_dies(self) -> None:
        await self.limit(tokens_per_minute=10_000, tokens_per_day=20_000)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, stream=True, store=False, max_output_tokens=500)
            reserved = await self.used("tokens per minute")
            self.assertEqual(await sync_to_async(unstored.release_abandoned)(), 0)
            self.assertEqual((reserved > 500, await self.used("tokens per day")), (True, reserved))
            # The process seems dead to the others, and goes on later.
            await OpenReservation.objects.aupdate(worker=uuid4())
            self.assertEqual([await sync_to_async(unstored.release_abandoned)() for _ in range(2)], [1, 0])
            self.assertEqual((await self.used("tokens per minute"), await self.used("tokens per day")), (0, 0))
            engine.gate.set()
            usage = (await self.read(answer))[-1]["response"]["usage"]
            self.assertEqual(await self.used("tokens per day"), usage["total_tokens"])

    async def test_reservation_of_a_process_that_hangs_before_the_response_is_stored_is_given_back_once(self) -> None:
        await self.limit(tokens_per_minute=10_000, tokens_per_day=20_000)
        used: list[int] = []
        claim = approvals.claim_denials

        async def die_and_claim(*parameters: Any) -> None:
            """Let the process hang and seem dead to the others, between the reservation and the row of the response."""
            used.append(await self.used("tokens per minute"))
            await OpenReservation.objects.aupdate(worker=uuid4())
            await sync_to_async(unstored.release_abandoned)()
            used.append(await self.used("tokens per minute"))
            await claim(*parameters)

        async with self.serving(*[record_text(HELLO)] * 2) as client:
            earlier = (await self.made(client, max_output_tokens=500))["usage"]["total_tokens"]
            with patch.object(approvals, "claim_denials", die_and_claim):
                response = await self.made(client, max_output_tokens=500)
        self.assertEqual((used[0] > earlier + 500, used[1]), (True, earlier))
        self.assertEqual(await self.used("tokens per day"), earlier + response["usage"]["total_tokens"])

    async def test_reservation_of_a_client_that_leaves_while_it_is_made_is_given_back(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        entered, may_go_on = threading.Event(), threading.Event()
        reserve = counters.reserve

        def reserve_slowly(*parameters: Any) -> list[LimitLevel]:
            entered.set()
            may_go_on.wait(10)
            return reserve(*parameters)

        async with self.serving() as client:
            with patch.object(counters, "reserve", reserve_slowly):
                request = asyncio.create_task(self.post(client, store=False, max_output_tokens=500))
                await eventually(entered.is_set)
                request.cancel()
                await asyncio.wait({request})
                may_go_on.set()
                await eventually(OpenReservation.objects.aexists)
            self.assertGreater(await self.used("tokens per minute"), 500)
            await eventually(lambda: bool(unstored.pending))
            await sync_to_async(lambda: list(usage_due(datetime.now(UTC))))()
            self.assertEqual(await self.used("tokens per minute"), 0)
            self.assertFalse(await OpenReservation.objects.aexists())

    async def test_reservations_of_living_processes_leave_no_rows(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            for store in (True, False):
                await self.made(client, store=store, max_output_tokens=500)
                self.assertFalse(await OpenReservation.objects.aexists())
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, stream=True, max_output_tokens=500)
            self.assertFalse(await OpenReservation.objects.aexists())
            engine.gate.set()
            await self.read(answer)

    async def test_old_window_is_not_settled(self) -> None:
        await self.limit(tokens_per_minute=10_000)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO)) as client:
            answer = await self.post(client, stream=True, max_output_tokens=500)
            later = datetime.now(UTC) + timedelta(seconds=50)
            await LimitCounter.objects.aupdate(start=later, used=7_000, recent=[7_000])
            engine.gate.set()
            await self.read(answer)
            self.assertEqual(await self.used("tokens per minute"), 7_000)


class SpendTest(ReservationCase):
    """Spend of a month by the table of prices, and usage."""

    async def test_cost_is_counted_and_refuses_when_the_month_is_spent(self) -> None:
        await self.limit(spend_per_month=Decimal("1.50"))
        with override_settings(RESPONSES_PRICES=PRICES, RESPONSES_CURRENCY="EUR"):
            async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
                made = await self.made(client, max_output_tokens=100)
                usage = made["usage"]
                cost = usage["input_tokens"] * 1_000_000 + usage["output_tokens"] * 2_000_000
                self.assertEqual(await self.used("spend per month"), cost)
                await self.made(client, max_output_tokens=100, store=False)
                await LimitCounter.objects.aupdate(used=1_495_500_000)
                answer = await self.post(client, max_output_tokens=100)
                self.refused(answer, 429, "insufficient_quota", None, "Limit 1.50 EUR, Used 1.4955 EUR")
        rows = [row async for row in UsageRecord.objects.order_by("id")]
        self.assertEqual([(row.requests, row.cost, row.key) for row in rows], [(1, cost, self.key.pk)] * 2)
        self.assertEqual([row.output_tokens for row in rows], [usage["output_tokens"]] * 2)


class SocketReservationTest(SocketCase):
    """The same on a WebSocket."""

    async def test_refusal_is_an_error_event_and_the_socket_stays_usable(self) -> None:
        await ApiKey.objects.filter(pk=self.key.pk).aupdate(tokens_per_minute=1_000)
        api_keys.clear_cache()
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            self.assertEqual((await socket.create_response(max_output_tokens=600))["status"], "completed")
            self.assertEqual((await socket.create_response(max_output_tokens=600, store=False))["status"], "completed")
            await LimitCounter.objects.aupdate(used=900, recent=[900])
            refused = await socket.create_rejected(max_output_tokens=600)
            self.assertEqual((refused["status"], refused["code"]), (429, "rate_limit_exceeded"))
