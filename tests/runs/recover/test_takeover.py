"""Take-over of runs: released, left by a dead process, taken from a slow process. Each response has a single log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import orjson
import pytest
from django.test import AsyncClient, override_settings

from responses_app.engine_interface import Logprob
from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from responses_app.models import Event, Lease, Response
from responses_app.observability import events
from responses_app.observability.events import Observer
from responses_app.observability.records import EndedResponse
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.runs.new_run import RunOwner
from responses_app.runs.recover.takeover import take_over
from responses_app.store.log.rows.event_codec import NO_DATA, pack_events
from tests.support.api.case import HELLO, TOOL, WEATHER, ApiCase, bare, record_text, tokens
from tests.support.store.stored_events import read_stored_events, row_frames
from tests.support.waiting import LIMIT_S, eventually

HEAD, TAIL = (
    "<|channel|>analysis<|message|>They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Hello",
    " there!<|return|>",
)
WHOLE = HEAD + TAIL


def slow(head: str = HEAD, tail: str = TAIL, **fields: Any) -> Recording:
    """Says its head, token by token, and then thinks for longer than any test waits."""
    line = record_text(head, **fields)
    return Recording([*line.steps, Delay(600), Tokens(tokens(tail))])


class CountingObserver(Observer):
    """Observer of take-overs and of responses that have ended."""

    def __init__(self) -> None:
        self.takeovers = 0
        self.ended: list[EndedResponse] = []

    def taken_over(self) -> None:
        self.takeovers += 1

    def response_ended(self, record: EndedResponse) -> None:
        self.ended.append(record)


class TakeoverTest(ApiCase):
    """Two hubs on a single database, as two processes would have them."""

    @asynccontextmanager
    async def two(self, *lines: Recording) -> AsyncIterator[tuple[AsyncClient, RunManager]]:
        """Yield a client of the first hub, and the second hub, which has not started."""
        async with self.serving(*lines) as client:
            second = RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})
            try:
                yield client, second
            finally:
                await second.close()
                await self.engine.start()  # The same engine: the first hub is still to close it, strictly.

    async def begin(self, client: AsyncClient, **body: Any) -> str:
        """Create a background response and wait for its first delta."""
        uid = str((await self.made(client, background=True, **body))["id"])
        await eventually(lambda: self.has_deltas(uid))
        return uid

    async def has_deltas(self, uid: str) -> bool:
        """Return whether the log of the response has a delta of a text or of arguments."""
        types = ["response.output_text.delta", "response.function_call_arguments.delta"]
        events = await read_stored_events(Event.objects.filter(response__uid=uid))
        return any(event["type"] in types for event in events)

    async def whole(self, client: AsyncClient, uid: str) -> list[dict[str, Any]]:
        """Return the log to the end after a check of the rules."""
        answer = await client.get(f"/v1/responses/{uid}?stream=true")
        async with asyncio.timeout(LIMIT_S):
            return self.judge(await self.read(answer))

    async def follow(self, second: RunManager) -> None:
        """Close the first process and start the second."""
        await self.hub.close()
        await self.engine.start()
        manager.set_current(second)
        await second.start()

    def text(self, events: list[dict[str, Any]]) -> str:
        """Return the text of the last message."""
        return str(events[-1]["response"]["output"][-1]["content"][0]["text"])

    async def test_response_that_is_taken_over_is_observed_once(self) -> None:
        observer = CountingObserver()
        events.add_observer(observer)
        self.addCleanup(events.close)
        async with self.two(slow(), record_text(WHOLE)) as (client, second):
            uid = await self.begin(client)
            await self.crash()
            await self.hub.close()
            await self.engine.start()
            self.assertEqual((observer.takeovers, observer.ended), (0, []))
            manager.set_current(second)
            await second.start()
            await self.whole(client, uid)
        (ended,) = observer.ended
        self.assertEqual((observer.takeovers, ended.response["id"], ended.response["status"]), (1, uid, "completed"))
        self.assertIsNone(ended.first_token_s, "another process began the response")
        self.assertGreater(ended.duration_s, 0)

    async def test_handed_over_response_continues_elsewhere_in_the_same_log(self) -> None:
        async with self.two(slow(), record_text(WHOLE, match=tokens("<|start|>user"))) as (client, second):
            uid = await self.begin(client)
            before = await read_stored_events(Event.objects.all())
            await self.hub.drain(0.01)
            await self.follow(second)
            events = await self.whole(client, uid)
            self.assertEqual((events[-1]["type"], self.text(events)), ("response.completed", "Hello there!"))
            self.assertEqual(before, bare(events[: len(before)]))
            first, again = self.engine.requests
            self.assertEqual(again.request_id, first.request_id)
            self.assertTrue(first.request_id)
            self.assertEqual((again.prior_tokens, list(again.prompt)), (len(tokens(HEAD)), [*first.prompt, *tokens(HEAD)]))
            self.assertEqual(again.sampling.max_tokens, first.sampling.max_tokens - again.prior_tokens)
            self.assertNotEqual(first.id, again.id)
            self.assertEqual(again.cache_salt, first.cache_salt)
            usage = events[-1]["response"]["usage"]
            self.assertEqual(usage["output_tokens"], len(tokens(WHOLE)))
            self.assertEqual(usage["input_tokens"], len(first.prompt))
            self.assertFalse(await Lease.objects.aexists())

    async def test_responses_of_a_dead_process_continue_elsewhere(self) -> None:
        async with self.two(slow(), record_text(WHOLE)) as (client, second):
            response = await self.post(client, stream=True)
            self.assertEqual(response.status_code, 200)
            row = await Response.objects.aget()
            await eventually(lambda: self.has_deltas(row.uid))
            await self.crash()
            await second.start()
            with (
                patch("responses_app.store.cluster.leases.WORKER_TIMEOUT_S", 0.0),
                patch("responses_app.runs.recover.lease_keeper.WORKER_TIMEOUT_S", 0.0),
            ):
                events = await self.whole(client, row.uid)
            self.assertEqual((events[-1]["type"], self.text(events)), ("response.completed", "Hello there!"))
            # The subscriber of the first process has followed the log and received the same events.
            self.assertEqual(await asyncio.wait_for(self.read(response), LIMIT_S), events)

    @pytest.mark.slow
    async def test_an_owner_that_was_only_slow_finds_itself_replaced(self) -> None:
        line = Recording([*record_text(HEAD).steps, Delay(5), Tokens(tokens(TAIL))])
        async with self.two(line, record_text(HEAD + " you" + TAIL)) as (client, second):
            response = await self.post(client, stream=True)
            row = await Response.objects.aget()
            await eventually(lambda: self.has_deltas(row.uid))
            # It does not look any more, as if its loop stood still, but goes on with what it has.
            assert self.hub.services is not None
            await self.hub.services.lease_keeper.stop()
            await Lease.objects.aupdate(worker=uuid4())
            await second.start()
            with patch("responses_app.runs.recover.lease_keeper.WORKER_TIMEOUT_S", 0.0):
                events = await asyncio.wait_for(self.read(response), LIMIT_S)
            self.assertEqual(self.judge(events), await self.whole(client, row.uid))
            self.assertEqual([event["type"] for event in events].count("response.completed"), 1)
            self.assertEqual(self.text(events), "Hello you there!")

    async def test_a_repeated_request_at_another_process_goes_on_when_the_first_client_leaves(self) -> None:
        body = {"model": "m", "input": "Hi", "stream": True}
        headers = {"Idempotency-Key": "mine"}
        async with self.two(Recording([*record_text(HEAD).steps, Delay(1), Tokens(tokens(TAIL))])) as (client, second):
            first: Any = await client.post("/v1/responses", body, content_type="application/json", headers=headers)
            row = await Response.objects.aget()
            manager.set_current(second)
            await second.start()
            again = await client.post("/v1/responses", body, content_type="application/json", headers=headers)
            await eventually(lambda: self.hub.runs[row.uid].is_repeated)
            parts = first.streaming_content
            await anext(parts)
            await parts.aclose()
            first.close()
            events = await asyncio.wait_for(self.read(again), LIMIT_S)
            self.assertEqual((events[-1]["type"], self.text(events)), ("response.completed", "Hello there!"))

    async def test_cancelling_reaches_the_process_that_runs_it(self) -> None:
        async with self.two(slow()) as (client, second):
            uid = await self.begin(client)
            manager.set_current(second)
            await second.start()
            answer = await asyncio.wait_for(client.post(f"/v1/responses/{uid}/cancel"), LIMIT_S)
            self.assertEqual((answer.status_code, orjson.loads(answer.content)["status"]), (200, "cancelled"))
            self.assertEqual((await self.whole(client, uid))[-1]["response"], orjson.loads(answer.content))
            self.assertEqual(self.engine.aborted, [uid])

    @override_settings(RESPONSES_MAX_BACKGROUND=0)
    async def test_queued_response_starts_in_a_process_with_capacity(self) -> None:
        async with self.two(record_text(HELLO)) as (client, second):
            made = await self.made(client, background=True)
            self.assertEqual(made["status"], "queued")
            with override_settings(RESPONSES_MAX_BACKGROUND=1):
                await second.start()
                events = await self.whole(client, made["id"])
            kinds = [event["type"] for event in events[:3]]
            self.assertEqual(kinds, ["response.created", "response.queued", "response.in_progress"])
            self.assertEqual(self.engine.requests[0].id, made["id"])

    @override_settings(RESPONSES_MAX_BACKGROUND=0)
    async def test_time_of_the_start_of_a_queued_response_is_stored(self) -> None:
        async with self.two(slow()) as (client, second):
            made = await self.made(client, background=True)
            self.assertIsNone((await Lease.objects.aget()).started_at)
            with override_settings(RESPONSES_MAX_BACKGROUND=1):
                await second.start()
                await eventually(lambda: self.has_deltas(made["id"]))
            self.assertIsNotNone((await Lease.objects.aget()).started_at)

    async def take_over_after_two_hours(self, queued_until: datetime | None) -> dict[str, Any]:
        """Return the end of a response that was created two hours before its process died."""
        async with self.two(slow(), record_text(WHOLE, match=tokens("<|start|>user"))) as (client, second):
            uid = await self.begin(client)
            await self.crash()
            await Response.objects.filter(uid=uid).aupdate(created_at=datetime.now(UTC) - timedelta(hours=2))
            await Lease.objects.aupdate(started_at=queued_until)
            await second.start()
            response: dict[str, Any] = (await self.whole(client, uid))[-1]["response"]
            return response

    @override_settings(RESPONSES_MAX_RUN_SECONDS={"": 3600})
    async def test_running_time_counts_from_the_first_start(self) -> None:
        response = await self.take_over_after_two_hours(None)
        self.assertEqual(response["incomplete_details"], {"reason": "max_run_seconds", "limit": "model_maximum", "value": 3600})
        self.assertIn("Hello", response["output"][-1]["content"][0]["text"])

    @override_settings(RESPONSES_MAX_RUN_SECONDS={"": 3600})
    async def test_running_time_does_not_count_the_time_in_the_queue(self) -> None:
        response = await self.take_over_after_two_hours(datetime.now(UTC))
        self.assertEqual(response["status"], "completed")

    async def test_a_bound_answer_is_made_again_if_that_is_sure_to_come_out_the_same(self) -> None:
        head, tail = WEATHER[: WEATHER.index("Par")], WEATHER[WEATHER.index("Par") :]
        bound = {"tools": [TOOL], "tool_choice": "required", "temperature": 0.0}
        async with self.two(slow(head, tail), record_text(WEATHER)) as (client, second):
            uid = await self.begin(client, **bound)
            await self.follow(second)
            events = await self.whole(client, uid)
            call = events[-1]["response"]["output"][-1]
            self.assertEqual(
                (call["name"], call["arguments"], call["status"]), ("get_weather", '{"city":"Paris"}', "completed")
            )
            self.assertEqual(self.engine.requests[1].prior_tokens, 0)
            self.assertEqual(events[-1]["response"]["usage"]["output_tokens"], len(tokens(WEATHER)))

    async def test_a_bound_answer_chosen_by_chance_fails_and_says_why(self) -> None:
        head, tail = WEATHER[: WEATHER.index("Par")], WEATHER[WEATHER.index("Par") :]
        async with self.two(slow(head, tail)) as (client, second):
            uid = await self.begin(client, tools=[TOOL], tool_choice="required", temperature=1.0)
            await self.follow(second)
            last = (await self.whole(client, uid))[-1]["response"]
            self.assertEqual((last["status"], last["output"][-1]["status"]), ("failed", "incomplete"))
            self.assertIn("cannot be continued exactly", last["error"]["message"])

    async def test_an_idempotency_key_begins_another_response_if_the_first_one_could_not_be_continued(self) -> None:
        head, tail = WEATHER[: WEATHER.index("Par")], WEATHER[WEATHER.index("Par") :]
        bound = {"model": "m", "input": "Hi", "stream": True, "tools": [TOOL], "tool_choice": "required", "temperature": 1.0}
        headers = {"Idempotency-Key": "mine"}
        async with self.two(slow(head, tail), record_text(WEATHER)) as (client, second):
            first = await client.post("/v1/responses", bound, content_type="application/json", headers=headers)
            row = await Response.objects.aget()
            await eventually(lambda: self.has_deltas(row.uid))
            await self.crash()
            await self.follow(second)
            self.assertEqual((await self.read(first))[-1]["type"], "response.failed")
            again = await client.post("/v1/responses", bound, content_type="application/json", headers=headers)
            self.assertEqual((await self.read(again))[-1]["type"], "response.completed")

    async def test_response_whose_log_was_archived_since_is_not_taken_over(self) -> None:
        async with self.two(record_text(HELLO)) as (client, second):
            await self.made(client)
            row = await Response.objects.aget()
            # As when the lease is read before another process ends the response, and the log behind that.
            await Response.objects.aupdate(ended_at=None, status="in_progress")
            await Lease.objects.acreate(response=row, worker=uuid4(), model="m")
            await Event.objects.all().adelete()
            services = await second.start()
            owner = RunOwner(services.recorder, services.lease_keeper.worker)
            self.assertIsNone(await take_over(row.pk, owner, second.served, lambda _request, _uid: None))
            await Lease.objects.all().adelete()

    async def test_log_probabilities_are_not_lost(self) -> None:
        def likely(text: str) -> Tokens:
            return Tokens(tokens(text), [Logprob(token, -0.5, [(token, -0.5)]) for token in tokens(text)])

        fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
        async with self.two(Recording([likely(HEAD), Delay(600), likely(TAIL)]), Recording([likely(WHOLE)])) as (
            client,
            second,
        ):
            uid = await self.begin(client, **fields)
            await self.follow(second)
            part = (await self.whole(client, uid))[-1]["response"]["output"][-1]["content"][0]
            self.assertEqual("".join(entry["token"] for entry in part["logprobs"]), "Hello there!")

    async def begin_unserved(self, client: AsyncClient, second: RunManager) -> str:
        """Begin a response in a process that ends, of a model that `second` does not serve."""
        uid = await self.begin(client)
        await self.hub.close()
        await self.engine.start()
        await Lease.objects.aupdate(model="gone")
        await second.start()
        return uid

    async def test_response_of_an_unserved_model_fails_finally(self) -> None:
        async with self.two(slow()) as (client, second):
            uid = await self.begin_unserved(client, second)
            with (
                patch("responses_app.store.cluster.leases.MAX_UNSERVED_S", 0.3),
                patch("responses_app.runs.recover.lease_keeper.TIDY_EVERY", 0.0),
            ):
                manager.set_current(second)
                last = (await self.whole(client, uid))[-1]["response"]
            self.assertEqual((last["status"], last["output"][-1]["status"]), ("failed", "incomplete"))
            self.assertIn("no server serves the model 'gone'", last["error"]["message"])

    async def test_response_of_an_unserved_model_can_be_cancelled(self) -> None:
        async with self.two(slow()) as (client, second):
            uid = await self.begin_unserved(client, second)
            manager.set_current(second)
            answer = await client.post(f"/v1/responses/{uid}/cancel")
            self.assertEqual((answer.status_code, orjson.loads(answer.content)["status"]), (200, "cancelled"))

    async def test_a_log_that_does_not_come_out_the_same_is_closed_as_it_is(self) -> None:
        async with self.two(slow()) as (client, second):
            uid = await self.begin(client)
            await self.hub.close()
            await self.engine.start()
            last = await Event.objects.filter(response__uid=uid).order_by("-number").afirst()
            assert last is not None
            changed = [frame._replace(data=frame.data.replace(b"Hello", b"Howdy")) for frame in row_frames(last)]
            await Event.objects.filter(pk=last.pk).aupdate(type="", data=NO_DATA.decode(), packed=pack_events(changed))
            manager.set_current(second)
            await second.start()
            events = await self.whole(client, uid)
            got = events[-1]["response"]
            self.assertEqual((got["status"], got["output"][-1]["status"]), ("failed", "incomplete"))
            self.assertEqual(self.text(events), "Howdy")
            self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))


@override_settings(RESPONSES_ENGINE_WAIT=5)
class EngineTest(ApiCase):
    """The engine dies and comes back."""

    async def test_recovered_engine_continues_the_response(self) -> None:
        dying = Recording([*record_text(HEAD).steps, Fault("down", seconds=0.4)])
        async with self.serving(dying, record_text(WHOLE)) as client:
            events = await self.stream(client)
            self.assertEqual(events[-1]["response"]["output"][-1]["content"][0]["text"], "Hello there!")
            self.assertEqual([request.prior_tokens for request in self.engine.requests], [0, len(tokens(HEAD))])

    async def test_response_without_progress_fails_finally(self) -> None:
        async with self.serving(*[Recording([Fault("down")])] * 3) as client:
            events = await self.stream(client)
            self.assertEqual(events[-1]["type"], "response.failed")
            self.assertIn("engine", events[-1]["response"]["error"]["message"])
