"""POST /v1/responses: one log, four ways to see it, and all of them agree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import orjson
from django.test import AsyncClient
from openai.types.responses import Response as WireResponse

from responses_app.dialects.sampling_defaults import SamplingDefaults
from responses_app.engine_interface import EngineLacksModel
from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from responses_app.models import Event, Item, Response
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, ApiCase, bare, first_event, record_text, sse, tokens
from tests.support.engines.held_engine import HeldEngine
from tests.support.store.stored_events import read_stored_events
from tests.support.waiting import eventually, run_ready_tasks


class CreateTest(ApiCase):
    """With a scripted engine and the real database."""

    async def test_post_stream_get_and_replay_are_the_same_bytes(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            events = await self.stream(client)
            final = events[-1]["response"]
            got = await client.get(f"/v1/responses/{final['id']}")
            self.assertEqual(orjson.loads(got.content), final)
            replayed = await self.read(await client.get(f"/v1/responses/{final['id']}?stream=true"))
            self.assertEqual(replayed, events)
            posted = await self.post(client)
            again = await client.get(f"/v1/responses/{orjson.loads(posted.content)['id']}")
            self.assertEqual(posted.content, again.content)

    async def test_deltas_are_padded_unless_that_is_switched_off(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client:
            for options in ({}, {"stream_options": {"include_obfuscation": False}}):
                with self.subTest(options=options):
                    response = await self.post(client, stream=True, **options)
                    live = await self._blocks(response)
                    uid = first_event(live[0])["response"]["id"]
                    query = "" if not options else "&include_obfuscation=false"
                    replay = await client.get(f"/v1/responses/{uid}?stream=true{query}")
                    for parts in (live, await self._blocks(replay)):
                        with self.subTest(live=parts is live):
                            deltas = [part for part in parts if b".delta" in part.split(b"\n")[0]]
                            self.assertTrue(deltas)
                            padded = [b'"obfuscation":"' in part for part in deltas]
                            self.assertEqual(padded, [not options] * len(deltas))
                            lengths = {len(part.split(b"data: ")[1]) % 16 for part in deltas}
                            self.assertEqual(lengths == {0}, not options)
                            self.assertFalse(any(b"obfuscation" in part for part in parts if part not in deltas))

    async def test_a_stop_sequence_ends_the_answer_and_the_engine(self) -> None:
        async with self.serving(*[record_text(THOUGHT)] * 3) as client:
            whole = await self.made(client, stop=None)
            for stop in (" there", ["zzz", " th"]):
                with self.subTest(stop=stop):
                    events = await self.stream(client, stop=stop, top_logprobs=1)
                    made = events[-1]["response"]
                    self.assertEqual((made["status"], made["output"][-1]["content"][0]["text"]), ("completed", "Hello"))
                    self.assertEqual(made["output"][0]["content"][0]["text"], "They greet me.")
                    self.assertLess(made["usage"]["output_tokens"], whole["usage"]["output_tokens"])
            bad: Any
            for bad, where in (
                ("", "stop"),
                (["x", ""], "stop[1]"),
                ([5], "stop[0]"),
                ({"x": 1}, "stop"),
                (["x"] * 17, "stop"),
            ):
                with self.subTest(stop=bad):
                    response = await self.post(client, stop=bad)
                    self.assertEqual((response.status_code, orjson.loads(response.content)["error"]["param"]), (400, where))

    async def test_the_body_is_a_response_of_the_openai_package(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            body = (await self.post(client, metadata={"a": "b"}, reasoning={"effort": "low"})).content
            response = WireResponse.model_validate_json(body, strict=True)
            self.assertEqual(response.output_text, "Hello there!")
            self.assertEqual([item.type for item in response.output], ["reasoning", "message"])
            assert response.usage is not None
            self.assertEqual(response.usage.output_tokens, len(tokens(THOUGHT)))
            self.assertGreater(response.usage.output_tokens_details.reasoning_tokens, 0)

    async def test_a_burst_of_all_tokens_at_once_gives_the_same_items(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(WEATHER, size=1000)) as client:
            slow, fast = [await self.stream(client, tools=[TOOL]) for _ in range(2)]
            shapes = [
                [
                    {key: value for key, value in item.items() if key not in {"id", "call_id"}}
                    for item in events[-1]["response"]["output"]
                ]
                for events in (slow, fast)
            ]
            self.assertEqual(shapes[0], shapes[1])
            self.assertEqual([item["type"] for item in shapes[0]], ["reasoning", "function_call"])
            self.assertEqual(shapes[0][1]["arguments"], '{"city":"Paris"}')

    async def test_tokens_behind_the_end_do_not_count_however_far_ahead_the_engine_is(self) -> None:
        calls = WEATHER + WEATHER.replace("<|channel|>analysis", "<|start|>assistant<|channel|>analysis")
        for text, fields in ((THOUGHT, {"stop": [" there"]}), (calls, {"tools": [TOOL], "parallel_tool_calls": False})):
            async with self.serving(*(record_text(text, size) for size in (1, 3, 100))) as client:
                first, *others = [(await self.made(client, **fields))["usage"] for _ in range(3)]
                with self.subTest(fields=fields):
                    self.assertEqual(others, [first] * 2)

    async def test_every_event_is_in_the_log_before_it_is_seen(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            response = await self.post(client, stream=True)
            seen = 0
            async for part in response.streaming_content:
                seen += part.count(b"event: ")
                self.assertGreaterEqual(len(await read_stored_events(Event.objects.all())), seen)
            row = await Response.objects.aget()
            stored = await read_stored_events(Event.objects.all())
            self.assertEqual((row.status, seen), ("completed", len(stored)))

    async def test_store_false_leaves_no_row(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            body = orjson.loads((await self.post(client, store=False)).content)
            await self.stream(client, store=False)
            self.assertEqual(await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount(), 0)
            self.refused(await client.get(f"/v1/responses/{body['id']}"), 404, None, None)
            self.refused(
                await self.post(client, previous_response_id=body["id"]),
                400,
                "previous_response_not_found",
                "previous_response_id",
            )

    async def test_cut_at_the_token_limit_it_is_incomplete_in_reasoning_text_and_arguments(self) -> None:
        cases = {
            "reasoning": ("<|channel|>analysis<|message|>" + "hm " * 40, 16),
            "message": ("<|channel|>final<|message|>" + "word " * 40, 16),
            "function_call": (WEATHER, len(tokens(WEATHER)) - 3),
        }
        async with self.serving(*[record_text(text) for text, _ in cases.values()]) as client:
            for kind, (_, limit) in cases.items():
                with self.subTest(kind=kind):
                    events = await self.stream(client, max_output_tokens=limit, tools=[TOOL])
                    response = events[-1]["response"]
                    self.assertEqual(events[-1]["type"], "response.incomplete")
                    cut = {"reason": "max_output_tokens", "limit": "request", "value": limit}
                    self.assertEqual(response["incomplete_details"], cut)
                    self.assertEqual((response["output"][-1]["type"], response["output"][-1]["status"]), (kind, "incomplete"))
                    self.assertEqual(response["usage"]["output_tokens"], limit)

    async def test_sampling_of_the_generation_config_is_a_default(self) -> None:
        text = "<|channel|>final<|message|>One END two<|return|>"
        async with self.serving(record_text(text), record_text(text)) as client:
            self.hub.model("m").defaults = SamplingDefaults(
                0.6, 0.95, top_k=20, min_p=0.1, repetition_penalty=1.1, stop_strings=("END",), suppress_tokens=(3, 4)
            )
            ended = await self.made(client)
            self.assertEqual(ended["output"][0]["content"][0]["text"], "One ")
            self.assertEqual((ended["temperature"], ended["top_p"], ended["stop_sequence"]), (0.6, 0.95, "END"))
            requested = {"temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1}
            await self.made(client, **requested, logit_bias={"3": 2})
            default, chosen = (request.sampling for request in self.engine.requests)
            self.assertEqual({name: getattr(chosen, name) for name in requested}, requested)
            self.assertEqual([getattr(default, name) for name in requested], [0.6, 0.95, 20, 0.1, 1.1])
            self.assertEqual((default.bias, chosen.bias), ({3: -100, 4: -100}, {3: 2, 4: -100}))
            model = orjson.loads((await client.get("/v1/models/m")).content)
            self.assertEqual(model["sampling_defaults"]["top_k"], 20)

    async def test_limit_of_the_generation_config_is_a_default(self) -> None:
        text = "<|channel|>final<|message|>" + "word " * 40
        async with self.serving(record_text(text), record_text(text)) as client:
            self.hub.model("m").defaults = SamplingDefaults(max_new_tokens=16)
            cut = await self.made(client)
            details = {"reason": "max_output_tokens", "limit": "model_default", "value": 16}
            self.assertEqual((cut["status"], cut["incomplete_details"]), ("incomplete", details))
            self.assertEqual((cut["usage"]["output_tokens"], cut["max_output_tokens"]), (16, None))
            longer = await self.made(client, max_output_tokens=32)
            self.assertEqual((longer["usage"]["output_tokens"], longer["max_output_tokens"]), (32, 32))

    async def test_a_dying_engine_ends_the_stream_with_error_and_failed_and_keeps_the_text(self) -> None:
        dies = Recording([Tokens(tokens("<|channel|>final<|message|>Half a sen")), Fault("down", "killed")])
        async with self.serving(dies) as client:
            events = await self.stream(client)
            self.assertEqual(
                [event["type"] for event in events[-3:]], ["response.output_item.done", "error", "response.failed"]
            )
            response = events[-1]["response"]
            self.assertEqual(response["output"][0]["content"][0]["text"], "Half a sen")
            self.assertEqual((response["output"][0]["status"], response["error"]["code"]), ("incomplete", "server_error"))
            self.assertEqual((await Response.objects.aget()).status, "failed")

    async def test_without_an_engine_the_answer_is_503_and_nothing_is_kept(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.engine.fail_for()
            for stream in (False, True):
                # The server has logged the error already, with the id of the request.
                with self.subTest(stream=stream), self.assertNoLogs("django.request"):
                    response = await self.post(client, stream=stream)
                    self.refused(response, 503, "server_error", None)
                    self.assertEqual(response["Retry-After"], "2")
            self.assertEqual(await Response.objects.acount(), 0)
            self.engine.recover()

    async def test_a_model_that_the_engine_has_removed_is_503_with_a_sentence(self) -> None:
        def generate(_: object) -> Any:
            raise EngineLacksModel("HTTP 404: The model does not exist.")

        async with self.serving() as client:
            with patch.object(self.engine, "generate", generate):
                response = await self.post(client)
                self.refused(response, 503, "server_error", None)
                self.assertIn("does not serve the model 'm' any more", response.json()["error"]["message"])
                events = await self.stream(client)
            self.assertEqual(events[-1]["type"], "response.failed")
            self.assertIn("does not serve the model 'm' any more", events[-1]["response"]["error"]["message"])
            stored = await Response.objects.acount()
            self.engine.fail_for()
            with patch.object(self.engine, "lacks_model", True, create=True):
                for stream in (False, True):
                    response = await self.post(client, stream=stream)
                    self.refused(response, 503, "server_error", None)
                    self.assertIn("does not serve the model 'm' any more", response.json()["error"]["message"])
            self.assertEqual(await Response.objects.acount(), stored)
            self.engine.recover()

    async def test_an_engine_that_refuses_requests_is_429_and_nothing_is_kept(self) -> None:
        async with self.serving() as client:
            self.engine.refusal_s = 6.5
            for stream in (False, True):
                with self.subTest(stream=stream):
                    response = await self.post(client, stream=stream)
                    self.refused(response, 429, "rate_limit_exceeded", None)
                    self.assertEqual(response["Retry-After"], "7")
            self.assertEqual(await Response.objects.acount(), 0)

    async def test_a_request_that_the_engine_refuses_is_429_or_a_failed_stream(self) -> None:
        busy = Recording([Fault("busy", "queue full")])
        async with self.serving(busy, busy) as client:
            response = await self.post(client)
            self.refused(response, 429, "rate_limit_exceeded", None)
            self.assertEqual(response["Retry-After"], "1")
            events = await self.stream(client)
            self.assertEqual([event["type"] for event in events[-2:]], ["error", "response.failed"])
            self.assertEqual(events[-1]["response"]["error"]["code"], "rate_limit_exceeded")

    async def test_a_client_that_leaves_stops_the_engine_and_leaves_a_closed_log(self) -> None:
        slow = Recording(
            [Tokens(tokens("<|channel|>final<|message|>Once upon")), Delay(600), Tokens(tokens(" a time<|return|>"))]
        )
        async with self.serving(slow) as client:
            response = await self.post(client, stream=True)
            parts = aiter(response.streaming_content)
            while b" upon" not in await anext(parts):
                pass
            reading = asyncio.create_task(self._drain(parts))
            await run_ready_tasks(10)
            reading.cancel()  # What Django does when its client has gone.
            (run,) = self.hub.runs.values()
            await asyncio.wait_for(run.wait_terminal(), 60)
            self.assertEqual(self.engine.aborted, [run.uid])
            got = orjson.loads((await client.get(f"/v1/responses/{run.uid}")).content)
            self.assertEqual((got["status"], got["error"], got["output"][0]["status"]), ("cancelled", None, "incomplete"))
            self.assertEqual(got["output"][0]["content"][0]["text"], "Once upon")
            self.judge(await self.read(await client.get(f"/v1/responses/{run.uid}?stream=true")))

    async def test_while_it_runs_get_shows_it_in_progress_and_a_second_listener_sees_the_same(self) -> None:
        self.engine = engine = HeldEngine()
        held = Recording([Tokens(tokens(THOUGHT[: THOUGHT.index("there")])), Tokens(tokens("there!<|return|>"))])
        async with self.serving(held) as client:
            response = await self.post(client, stream=True)
            first = aiter(response.streaming_content)
            head = await anext(first)
            uid = first_event(head)["response"]["id"]
            (run,) = self.hub.runs.values()
            await eventually(lambda: run.broadcast.frames[-1].type == "response.output_text.delta")
            got = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
            self.assertEqual((got["status"], [item["type"] for item in got["output"]]), ("in_progress", ["reasoning"]))
            engine.gate.set()
            second, remaining_events = await asyncio.gather(self._replay(client, uid), self._drain(first))
            self.assertEqual(second, head + remaining_events)

    async def _replay(self, client: AsyncClient, uid: str) -> bytes:
        response: Any = await client.get(f"/v1/responses/{uid}?stream=true")
        return b"".join([part async for part in response.streaming_content])

    async def _blocks(self, response: Any) -> list[bytes]:
        return (await self._drain(response.streaming_content)).removesuffix(b"\n\n").split(b"\n\n")

    async def _drain(self, parts: AsyncIterator[bytes]) -> bytes:
        return b"".join([part async for part in parts])

    async def test_a_client_that_leaves_before_the_first_byte_leaves_a_closed_log(self) -> None:
        slow = Recording([Delay(600), Tokens(tokens(HELLO))])
        async with self.serving(slow) as client:
            request = asyncio.create_task(self.post(client))
            await eventually(lambda: self.engine.running)
            request.cancel()
            await asyncio.wait({request})
            await asyncio.wait_for(self.hub.drain(600), 60)
            row = await Response.objects.aget()
            self.assertEqual((row.status, self.engine.aborted), ("cancelled", [row.uid]))

    async def test_deleting_it_while_it_runs_ends_every_listener_properly_and_leaves_nothing(self) -> None:
        slow = Recording(
            [Tokens(tokens("<|channel|>final<|message|>Once upon")), Delay(600), Tokens(tokens(" a time<|return|>"))]
        )
        async with self.serving(slow) as client:
            response = await self.post(client, stream=True)
            await eventually(lambda: self.engine.running)
            (uid,) = self.hub.runs
            streams = [self.read(response), self.read(await client.get(f"/v1/responses/{uid}?stream=true"))]
            reading = asyncio.gather(*streams)
            gone = await asyncio.wait_for(asyncio.gather(*[client.delete(f"/v1/responses/{uid}") for _ in range(2)]), 60)
            self.assertEqual(sorted(answer.status_code for answer in gone), [200, 404])
            first, second = await asyncio.wait_for(reading, 60)
            self.assertEqual(self.judge(first), second)
            self.assertEqual((first[-1]["type"], first[-1]["response"]["status"]), ("response.failed", "cancelled"))
            self.assertEqual(await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount(), 0)

    async def test_a_post_whose_response_is_deleted_meanwhile_is_answered(self) -> None:
        slow = Recording([Delay(600), Tokens(tokens(HELLO))])
        async with self.serving(slow) as client:
            request = asyncio.create_task(self.post(client))
            await eventually(lambda: self.engine.running)
            (uid,) = self.hub.runs
            self.assertEqual((await client.delete(f"/v1/responses/{uid}")).status_code, 200)
            answer = orjson.loads((await asyncio.wait_for(request, 60)).content)
            self.assertEqual((answer["id"], answer["status"], answer["error"]), (uid, "cancelled", None))

    async def test_a_listener_in_another_process_follows_the_log(self) -> None:
        slow = Recording([Tokens(tokens(THOUGHT[: THOUGHT.index("there")])), Delay(0.5), Tokens(tokens("there!<|return|>"))])
        async with self.serving(slow) as client:
            response = await self.post(client, stream=True)
            row = await Response.objects.aget()
            seen, own_events = await asyncio.gather(self._follow(row.pk), self._drain(response.streaming_content))
            self.assertEqual(bare(sse(own_events)), seen)

    async def _follow(self, pk: int) -> list[dict[str, Any]]:
        await self.hub.start()
        assert self.hub.services is not None
        return [orjson.loads(frame.data) async for batch in self.hub.services.log_follower.follow(pk) for frame in batch]
