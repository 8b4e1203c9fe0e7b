"""Background responses: queued, followed from anywhere, cancelled, ended by a stop, and erased later if not stored."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.test import AsyncClient, override_settings

from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from responses_app.models import Event, Item, Lease, Response
from responses_app.runs.maintenance import prune_due
from responses_app.store.log.retention import TEMPORARY
from tests.support.api.case import HELLO, ApiCase, first_event, record_text, tokens
from tests.support.waiting import eventually, run_ready_tasks

HEAD = "<|channel|>final<|message|>Once upon"
# It says something and then falls silent for longer than any test waits.
SILENT = Recording([Tokens(tokens(HEAD)), Delay(600), Tokens(tokens(" a time<|return|>"))])
LONG = HELLO.replace("there", "there " * 40)
BROKEN = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Fault("down", "killed")])
LIMIT = 180


class BackgroundTest(ApiCase):
    """Against the real database, with a scripted engine."""

    async def test_background_response_is_queued_and_polled_to_its_end(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            queued = await self.begin(client)
            self.assertEqual((queued["status"], queued["background"]), ("queued", True))
            self.assertEqual((queued["output"], queued["usage"], queued["completed_at"]), ([], None, None))
            await self.ended()
            got = await self.get(client, queued["id"])
            self.assertEqual((got["status"], got["background"]), ("completed", True))
            events = self.judge(await self.replay(client, queued["id"]))
            kinds = [event["type"] for event in events[:3]]
            self.assertEqual(kinds, ["response.created", "response.queued", "response.in_progress"])
            self.assertEqual(events[0]["response"], queued)
            self.assertEqual(events[1]["response"], queued)
            self.assertEqual(events[-1]["response"], got)
            self.assertEqual((await Response.objects.aget()).status, "completed")

    async def test_long_completion_window_has_lower_priority(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            for window in ("soonest", "2h"):
                await self.begin(client, background_options={"completion_window": window, "continuation_id": "mine"})
                await self.ended()
            self.assertEqual([request.priority for request in self.engine.requests], [0, 1])

    async def test_a_client_that_leaves_its_stream_stops_nothing_and_may_come_back(self) -> None:
        pausing = Recording([Tokens(tokens(HEAD)), Delay(0.5), Tokens(tokens(" a time<|return|>"))])
        async with self.serving(pausing) as client:
            response = await self.post(client, stream=True, background=True)
            parts = aiter(response.streaming_content)
            head = first_event(await anext(parts))
            self.assertEqual(head["response"]["status"], "queued")
            await parts.aclose()
            response.close()
            uid = head["response"]["id"]
            remaining_events = await self.replay(client, uid, after=0)
            whole = self.judge(await self.replay(client, uid))
            self.assertEqual((remaining_events[0]["type"], remaining_events), ("response.queued", whole[1:]))
            self.assertEqual(whole[-1]["type"], "response.completed")
            self.assertEqual(self.engine.aborted, [])
            self.assertEqual(await self.replay(client, uid, after=whole[-1]["sequence_number"]), [])

    @override_settings(RESPONSES_MAX_BACKGROUND=1, RESPONSES_MAX_QUEUED=3)
    async def test_responses_over_the_limit_wait_in_a_bounded_queue(self) -> None:
        async with self.serving(SILENT, record_text(HELLO), record_text(HELLO)) as client:
            first, second, third = [await self.begin(client) for _ in range(3)]
            await self.running()
            refused = await self.post(client, background=True)
            self.refused(refused, 429, "rate_limit_exceeded", None)
            self.assertEqual((await self.get(client, first["id"]))["status"], "in_progress")
            self.assertEqual(await self.get(client, second["id"]), second)
            statuses = [row.status async for row in Response.objects.order_by("pk")]
            self.assertEqual(statuses, ["in_progress", "queued", "queued"])
            await self.cancel(client, first["id"])
            await self.ended()
            self.assertEqual([request.id for request in self.engine.requests], [first["id"], second["id"], third["id"]])

    @override_settings(RESPONSES_MAX_BACKGROUND=1)
    async def test_a_cancelled_one_that_was_queued_never_starts(self) -> None:
        async with self.serving(SILENT) as client:
            first, second = [await self.begin(client) for _ in range(2)]
            await self.running()
            body = await self.cancel(client, second["id"])
            self.assertEqual((body["status"], body["output"], body["usage"]), ("cancelled", [], None))
            self.judge(await self.replay(client, second["id"]))
            await self.cancel(client, first["id"])
            self.assertEqual([request.id for request in self.engine.requests], [first["id"]])

    async def test_cancelling_stops_the_engine_and_is_the_same_each_time(self) -> None:
        async with self.serving(SILENT) as client:
            uid = (await self.begin(client))["id"]
            await self.running()
            bodies = await asyncio.gather(*[self.cancel(client, uid) for _ in range(3)])
            bodies += [await self.cancel(client, uid), await self.get(client, uid)]
            body = bodies[0]
            self.assertEqual(bodies, [body] * 5)
            self.assertEqual((body["status"], body["error"], body["completed_at"]), ("cancelled", None, None))
            self.assertEqual(body["service_tier"], "default")
            self.assertEqual(self.engine.aborted, [uid])
            events = self.judge(await self.replay(client, uid))
            self.assertEqual((events[-1]["type"], events[-1]["response"]), ("response.failed", body))
            self.assertEqual((await Response.objects.aget()).status, "cancelled")

    async def test_ended_and_synchronous_responses_cannot_be_cancelled(self) -> None:
        lines = (record_text(HELLO), record_text(HELLO), record_text(LONG), BROKEN)
        async with self.serving(*lines) as client:
            uid = orjson.loads((await self.post(client)).content)["id"]
            await self.uncancellable(client, uid, "Cannot cancel a synchronous response.")
            for sentence, fields in (
                ("Cannot cancel a completed response.", {}),
                ("Cannot cancel a response in terminal state.", {"max_output_tokens": 16}),
                ("Cannot cancel a failed response.", {}),
            ):
                uid = (await self.begin(client, **fields))["id"]
                await self.ended()
                await self.uncancellable(client, uid, sentence)
            self.refused(await client.post("/v1/responses/resp_x/cancel"), 404, None, None)

    async def test_a_cancel_that_meets_the_end_leaves_one_terminal_event(self) -> None:
        rounds = 12
        async with self.serving(*[record_text(HELLO)] * rounds) as client:
            for turns in range(rounds):
                uid = (await self.begin(client))["id"]
                await run_ready_tasks(turns * 3)
                response = await client.post(f"/v1/responses/{uid}/cancel")
                await self.ended()
                got = await self.get(client, uid)
                self.assertEqual(response.status_code, 200 if got["status"] == "cancelled" else 400)
                self.judge(await self.replay(client, uid))
                self.assertEqual((await Response.objects.aget(uid=uid)).status, got["status"])
            # Responses that were cancelled before the engine received a request have left their recording.
            while self.engine.left:
                await self.post(client)

    @override_settings(RESPONSES_MAX_BACKGROUND=1)
    async def test_an_ordered_stop_gives_back_what_runs_and_what_waits(self) -> None:
        async with self.serving(SILENT) as client:
            uids = [(await self.begin(client))["id"] for _ in range(2)]
            await self.running()
            await self.hub.drain(0.1)
            await self.hub.close()
            statuses = [row.status async for row in Response.objects.order_by("pk")]
            self.assertEqual(statuses, ["in_progress", "queued"])
            self.assertEqual([row.worker async for row in Lease.objects.all()], [None, None])
            self.assertEqual(self.engine.aborted, uids[:1])

    async def test_unstored_response_is_readable_for_ten_minutes(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.begin(client, store=False))["id"]
            await self.ended()
            got = await self.get(client, uid)
            self.assertEqual((got["status"], got["store"]), ("completed", False))
            child = await self.post(client, previous_response_id=uid)
            self.refused(child, 400, "previous_response_not_found", "previous_response_id")
            child = await self.post(client, input=[{"type": "item_reference", "id": got["output"][0]["id"]}])
            self.refused(child, 404, None, "input")
            end = (await Response.objects.aget()).ended_at
            assert end is not None
            for seconds, count in ((0, 0), (1, 1)):
                with self.subTest(seconds=seconds, count=count):
                    now = end + TEMPORARY + timedelta(seconds=seconds)
                    self.assertEqual(await sync_to_async(lambda now: sum(prune_due(now)))(now), count)
            self.refused(await client.get(f"/v1/responses/{uid}"), 404, None, None)
            self.assertEqual(await Item.objects.acount() + await Event.objects.acount(), 0)

    async def begin(self, client: AsyncClient, **fields: Any) -> dict[str, Any]:
        """POST with `background`."""
        response = await self.post(client, background=True, **fields)
        self.assertEqual(response.status_code, 200, response.content)
        body: dict[str, Any] = orjson.loads(response.content)
        return body

    async def get(self, client: AsyncClient, uid: str) -> dict[str, Any]:
        """GET as JSON."""
        body: dict[str, Any] = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
        return body

    async def replay(self, client: AsyncClient, uid: str, after: int | None = None) -> list[dict[str, Any]]:
        """GET as a stream, to the end."""
        query = "" if after is None else f"&starting_after={after}"
        return await self.read(await client.get(f"/v1/responses/{uid}?stream=true{query}"))

    async def cancel(self, client: AsyncClient, uid: str) -> dict[str, Any]:
        """POST to cancel, which is taken."""
        response = await client.post(f"/v1/responses/{uid}/cancel")
        self.assertEqual(response.status_code, 200, response.content)
        body: dict[str, Any] = orjson.loads(response.content)
        return body

    async def uncancellable(self, client: AsyncClient, uid: str, sentence: str) -> None:
        """POST to cancel, which is refused."""
        self.refused(await client.post(f"/v1/responses/{uid}/cancel"), 400, None, None, sentence)

    async def running(self) -> None:
        """Wait until a run has a delta."""
        await eventually(
            lambda: any(frame.type.endswith(".delta") for run in self.hub.runs.values() for frame in run.broadcast.frames)
        )

    async def ended(self) -> None:
        """Wait until no response runs or waits."""
        await eventually(self.has_ended)

    async def has_ended(self) -> bool:
        """Return whether no response runs or waits."""
        return not self.hub.runs and not await Lease.objects.aexists()
