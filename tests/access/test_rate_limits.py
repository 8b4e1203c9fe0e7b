"""Limits of a key: requests a minute, responses at a time and models; over several processes, and given back however a response ends."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from unittest import mock
from uuid import UUID, uuid4

import orjson
import psycopg
from django.db import DatabaseError
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.models import ConcurrencySlot, Response, Worker
from responses_app.store import repeats
from tests.support.api.case import HELLO, ApiCase, record_text
from tests.support.api.delayed_release import delayed_release
from tests.support.engines.held_engine import HeldEngine
from tests.support.store.connection_loss import place
from tests.support.waiting import LIMIT_S, eventually, run_ready_tasks


class LimitsCase(ApiCase):
    """A key with limits."""

    async def has_no_slot(self) -> bool:
        """Return whether no slot is taken."""
        return not await ConcurrencySlot.objects.aexists()

    async def elsewhere(self, *, silent: float = 0.0) -> UUID:
        """Create a slot of the key in another process, whose last heartbeat was `silent` seconds ago. Return the id of the process."""
        heartbeat_at = timezone.now() - timedelta(seconds=silent)
        worker = await Worker.objects.acreate(uid=uuid4(), name="other", heartbeat_at=heartbeat_at)
        await ConcurrencySlot.objects.acreate(key=self.key, worker=worker.uid)
        return worker.uid


class MinuteTest(LimitsCase):
    """So many requests a minute."""

    async def test_the_headers_tell_what_is_left_and_one_too_many_is_refused_before_anything_runs(self) -> None:
        await self.limit(requests_per_minute=2)
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            for left, full in ((1, "30.00s"), (0, "60.00s")):
                answer = await self.post(client)
                self.assertEqual(answer.status_code, 200)
                self.assertEqual(answer["x-ratelimit-limit-requests"], "2")
                self.assertEqual(answer["x-ratelimit-remaining-requests"], str(left))
                self.assertAlmostEqual(float(answer["x-ratelimit-reset-requests"][:-1]), float(full[:-1]), delta=10)
            answer = await self.post(client)
            self.refused(answer, 429, "rate_limit_exceeded", None, "Limit 2")
            self.assertEqual(orjson.loads(answer.content)["error"]["type"], "rate_limit_error")
            self.assertTrue(1 <= int(answer["Retry-After"]) <= 30)
            self.assertEqual(answer["x-ratelimit-remaining-requests"], "0")
            self.assertEqual(await Response.objects.acount(), 2)
            # Requests without a model are not counted.
            self.assertEqual((await client.get("/v1/models")).status_code, 200)

    async def test_the_headers_have_the_names_of_anthropic_below_messages(self) -> None:
        await self.limit(requests_per_minute=1, tokens_per_minute=10_000)
        body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
        async with self.serving(record_text(HELLO)) as client:
            for status in (200, 429):
                answer = await client.post("/v1/messages", orjson.dumps(body), content_type="application/json")
                self.assertEqual(answer.status_code, status)
                self.assertEqual(answer["anthropic-ratelimit-requests-limit"], "1")
                self.assertEqual(answer["anthropic-ratelimit-requests-remaining"], "0")
                reset = datetime.fromisoformat(answer["anthropic-ratelimit-requests-reset"])
                self.assertTrue(timedelta() < reset - timezone.now() < timedelta(minutes=2))
                tokens = {name for name in answer.headers if name.lower().startswith("anthropic-ratelimit-tokens-")}
                self.assertEqual(len(tokens), 3 if status == 200 else 0)
            other = await self.post(client)
            self.assertFalse([name for name in other.headers if name.lower().startswith("anthropic")])

    async def test_the_minute_fills_again_by_and_by(self) -> None:
        await self.limit(requests_per_minute=2, rate_limit_until=timezone.now() + timedelta(seconds=55))
        async with self.serving(record_text(HELLO)) as client:
            self.refused(await self.post(client), 429, "rate_limit_exceeded", None)
            await self.limit(rate_limit_until=timezone.now() + timedelta(seconds=29))
            self.assertEqual((await self.post(client)).status_code, 200)
            self.refused(await self.post(client), 429, "rate_limit_exceeded", None)

    async def test_requests_from_before_the_clock_was_set_back_refuse_nothing(self) -> None:
        await self.limit(requests_per_minute=1, rate_limit_until=timezone.now() + timedelta(days=1))
        async with self.serving(record_text(HELLO)) as client:
            self.assertEqual((await self.post(client)).status_code, 200)
            self.refused(answer := await self.post(client), 429, "rate_limit_exceeded", None)
            self.assertLessEqual(int(answer["Retry-After"]), 60)

    async def test_counting_tokens_and_compacting_are_requests_too(self) -> None:
        await self.limit(requests_per_minute=1)
        body = orjson.dumps({"model": "m", "input": "Hi"})
        async with self.serving() as client:
            answer = await client.post("/v1/responses/input_tokens", body, content_type="application/json")
            self.assertEqual((answer.status_code, answer["x-ratelimit-remaining-requests"]), (200, "0"))
            for path in ("input_tokens", "compact"):
                answer = await client.post(f"/v1/responses/{path}", body, content_type="application/json")
                self.refused(answer, 429, "rate_limit_exceeded", None)

    async def test_making_a_conversation_and_adding_to_it_are_requests_too(self) -> None:
        await self.limit(requests_per_minute=2, max_concurrent=1)
        body = orjson.dumps({"items": [{"role": "user", "content": "Hi"}]})
        async with self.serving() as client:
            made = await client.post("/v1/conversations", body, content_type="application/json")
            self.assertEqual((made.status_code, made["x-ratelimit-remaining-requests"]), (200, "1"))
            path = f"/v1/conversations/{orjson.loads(made.content)['id']}/items"
            added = await client.post(path, body, content_type="application/json")
            self.assertEqual((added.status_code, added["x-ratelimit-remaining-requests"]), (200, "0"))
            for one in ("/v1/conversations", path):
                self.refused(await client.post(one, body, content_type="application/json"), 429, "rate_limit_exceeded", None)
            self.assertEqual(await ConcurrencySlot.objects.acount(), 0)

    async def test_a_key_without_limits_costs_no_query_and_has_no_headers(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            with mock.patch.object(rate_limits, "_acquire_slot", side_effect=AssertionError):
                answer = await self.post(client)
            self.assertFalse(any(name.lower().startswith("x-ratelimit") for name in answer.headers))


class CombinedLimitsTest(LimitsCase):
    """So many responses at a time."""

    async def test_concurrent_request_over_the_limit_is_refused_until_a_run_ends(self) -> None:
        await self.limit(max_concurrent=1)
        for store in (True, False):
            with self.subTest(store=store):
                self.engine = engine = HeldEngine()
                async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
                    running = await self.post(client, stream=True, store=store)
                    self.assertEqual(running.status_code, 200)
                    answer = await self.post(client)
                    self.refused(answer, 429, "rate_limit_exceeded", None, "Limit 1, Running 1")
                    self.assertEqual(answer["Retry-After"], "1")
                    engine.gate.set()
                    await self.read(running)
                    # After the last event the next request is accepted at once.
                    self.assertEqual((await self.post(client, store=store)).status_code, 200)
        self.assertEqual(await ConcurrencySlot.objects.acount(), 0)

    async def test_a_response_whose_row_has_just_begun_counts_once(self) -> None:
        await self.limit(max_concurrent=2)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            # The row replaces the slot itself, before the request knows that its first events are durable.
            with mock.patch.object(rate_limits.AdmittedRequest, "follow"):
                answers = [await self.post(client, background=True) for _ in range(2)]
            self.assertEqual([answer.status_code for answer in answers], [200, 200])
            self.assertEqual(await ConcurrencySlot.objects.acount(), 0)
            self.refused(await self.post(client), 429, "rate_limit_exceeded", None, "Limit 2, Running 2")
            engine.gate.set()

    async def test_of_many_that_come_at_once_so_many_are_let_in(self) -> None:
        await self.limit(max_concurrent=2)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            answers = await asyncio.gather(*(self.post(client, stream=True, store=number % 2 == 0) for number in range(6)))
            self.assertEqual(sorted(answer.status_code for answer in answers), [200] * 2 + [429] * 4)
            engine.gate.set()
            for answer in answers:
                if answer.status_code == 200:
                    await self.read(answer)

    async def test_request_refused_for_another_reason_releases_its_slot(self) -> None:
        await self.limit(max_concurrent=1, requests_per_minute=100)
        async with self.serving(record_text(HELLO)) as client:
            self.refused(await self.post(client, temperature=9), 400, "decimal_above_max_value", "temperature")
            self.refused(await self.post(client, model="unknown"), 400, "model_not_found", "model")
            self.assertEqual((await self.post(client)).status_code, 200)
        self.assertEqual(await ConcurrencySlot.objects.acount(), 0)

    async def test_a_client_that_leaves_gives_its_place_back(self) -> None:
        await self.limit(max_concurrent=1)
        self.engine = engine = HeldEngine()
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            leaving = await self.post(client, stream=True, store=False)
            self.assertEqual(await ConcurrencySlot.objects.acount(), 1)
            run = next(iter(self.hub.runs.values()))
            await asyncio.to_thread(leaving.close)
            await run.wait_terminal()
            await eventually(self.has_no_slot)
            engine.gate.set()
            self.assertEqual((await self.post(client)).status_code, 200)

    async def test_a_client_that_leaves_while_its_slot_is_taken_keeps_none(self) -> None:
        await self.limit(max_concurrent=1)
        taken, acquire_slot = asyncio.Event(), rate_limits._acquire_slot
        loop, leave = asyncio.get_running_loop(), threading.Event()

        def slowly(key: int, worker: UUID) -> rate_limits.AdmittedRequest:
            admitted = acquire_slot(key, worker)
            loop.call_soon_threadsafe(taken.set)
            leave.wait(LIMIT_S)
            return admitted

        async with self.serving(record_text(HELLO)) as client:
            with mock.patch.object(rate_limits, "_acquire_slot", slowly):
                leaving = asyncio.ensure_future(self.post(client, store=False))
                await taken.wait()
                leaving.cancel()
                await asyncio.wait({leaving}, timeout=0)
                leave.set()
                with suppress(asyncio.CancelledError):
                    await leaving
            await eventually(self.has_no_slot)
            self.assertEqual((await self.post(client)).status_code, 200)

    async def test_a_slow_client_reads_the_end_after_its_slot_was_given_back(self) -> None:
        await self.limit(max_concurrent=1)
        self.engine = engine = HeldEngine()
        with delayed_release() as (started, proceed):
            async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
                answer = await self.post(client, stream=True, store=False)
                engine.gate.set()
                # The run ends before the client reads.
                await started.wait()
                reading = asyncio.ensure_future(self.read(answer))
                await run_ready_tasks(100)
                self.assertFalse(reading.done())
                proceed.set()
                self.assertEqual((await reading)[-1]["type"], "response.completed")
                self.assertEqual((await self.post(client, store=False)).status_code, 200)

    async def test_runs_of_other_living_processes_count(self) -> None:
        await self.limit(max_concurrent=1)
        async with self.serving(record_text(HELLO)) as client:
            await self.elsewhere()
            self.refused(await self.post(client), 429, "rate_limit_exceeded", None)
            await Worker.objects.filter(name="other").aupdate(heartbeat_at=timezone.now() - timedelta(seconds=30))
            self.assertEqual((await self.post(client)).status_code, 200)

    async def test_runs_of_a_busy_process_count_while_it_holds_its_lock(self) -> None:
        await self.limit(max_concurrent=1)
        async with self.serving(record_text(HELLO)) as client:
            worker = await self.elsewhere(silent=30)
            with psycopg.connect(**place()) as other:
                other.execute(repeats.HOLD_SQL, [repeats.lock_number(worker)])
                self.refused(await self.post(client), 429, "rate_limit_exceeded", None, "Limit 1, Running 1")
                other.execute("SELECT pg_advisory_unlock_all()")
                self.assertEqual((await self.post(client)).status_code, 200)

    async def test_runs_of_a_machine_that_is_gone_do_not_count_although_its_lock_is_left(self) -> None:
        await self.limit(max_concurrent=1)
        async with self.serving(record_text(HELLO)) as client:
            worker = await self.elsewhere(silent=rate_limits.MAX_SILENT_S + 30)
            with psycopg.connect(**place()) as other:
                other.execute(repeats.HOLD_SQL, [repeats.lock_number(worker)])
                self.assertEqual((await self.post(client)).status_code, 200)

    async def test_a_place_that_could_not_be_given_back_is_given_back_without_another_request(self) -> None:
        await self.limit(max_concurrent=1)
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            with mock.patch.object(rate_limits, "RETRY_S", 0.01):
                with mock.patch.object(ConcurrencySlot.objects, "filter", side_effect=DatabaseError("away")):
                    self.assertEqual((await self.post(client, store=False)).status_code, 200)
                    self.refused(await self.post(client, store=False), 429, "rate_limit_exceeded", None, "Limit 1, Running 1")
                await eventually(self.has_no_slot, limit_s=20.0)
            self.assertEqual((await self.post(client, store=False)).status_code, 200)

    async def test_a_minute_is_not_spent_on_what_there_is_no_room_for(self) -> None:
        await self.limit(max_concurrent=1, requests_per_minute=2)
        async with self.serving(record_text(HELLO)) as client:
            await self.elsewhere()
            for _ in range(3):
                self.refused(await self.post(client), 429, "rate_limit_exceeded", None, "at a time")
            await ConcurrencySlot.objects.all().adelete()
            self.assertEqual((await self.post(client))["x-ratelimit-remaining-requests"], "1")


class ModelLimitsTest(LimitsCase):
    """The models that it may ask."""

    async def test_others_are_forbidden_and_not_listed(self) -> None:
        await self.limit(allowed_models=["another"])
        async with self.serving() as client:
            answer = await self.post(client)
            self.refused(answer, 403, "model_not_found", "model", "This key may not use the model")
            self.assertEqual(orjson.loads((await client.get("/v1/models")).content)["data"], [])
            self.assertEqual((await client.get("/v1/models/m")).status_code, 404)
            await self.limit(allowed_models=["m"])
            self.assertEqual(orjson.loads((await client.get("/v1/models")).content)["data"][0]["id"], "m")

    async def test_a_name_that_a_model_also_answers_to_is_that_model(self) -> None:
        await self.limit(allowed_models=["m"])
        async with self.serving(record_text(HELLO)) as client:
            self.hub.aliases = {"gpt": "m"}
            self.assertEqual((await self.post(client, model="gpt")).status_code, 200)
