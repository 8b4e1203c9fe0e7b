"""Steering of a running response: follow-up, required input, and failures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter

from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from responses_app.engines.replay.tape import Step
from responses_app.sockets import steering
from tests.support.api.case import HELLO, TOOL, record_text, tokens
from tests.support.api.websocket_case import SocketCase, SocketClient, assert_valid

THINKING = "<|channel|>analysis<|message|>Let me think about"
WRITING = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Once upon a"
CALLING = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"ci'
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}'


def stuck(text: str, *more: Step) -> Recording:
    """Record a generation that stalls after `text`, or continues with `more`."""
    return Recording([*(Tokens([token]) for token in tokens(text)), *(more or (Delay(60),)), Tokens(tokens("<|return|>"))])


def two_calls(pause: float) -> Recording:
    """Record a generation of two calls with a pause of `pause` seconds between them."""
    second = "<|start|>assistant" + CALL.replace("Oslo", "Rome") + "<|call|>"
    return Recording([Tokens(tokens(CALL + "<|end|>")), Delay(pause), Tokens(tokens(second))])


async def until(socket: SocketClient, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """Receive events up to the `count`-th event of type `kind`."""
    events = []
    while count:
        events.append(await socket.receive())
        count -= events[-1]["type"] == kind
    return events


async def steer(socket: SocketClient, uid: str, input: Any = "Stop.", **more: Any) -> None:
    await socket.send(type="response.steer", previous_response_id=uid, input=input, **more)


class SteeringTest(SocketCase):
    def prompt(self, number: int) -> str:
        return self.dialect.token_text(self.engine.requests[number].prompt)

    async def steered(
        self, socket: SocketClient, begin: str, delta: str, stream_id: str | None = None, **fields: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Steer a response after the first `delta` event. Return the steered response and the follow-up."""
        named = {"stream_id": stream_id} if stream_id else {}
        await socket.create("Tell me a story.", **fields, **named)
        before = await until(socket, delta)
        uid = before[0]["response"]["id"]
        await steer(socket, uid)
        accepted = await until(socket, "response.steer.accepted")
        self.assertEqual(accepted[-1]["steer"]["previous_response_id"], uid)
        self.assertTrue(accepted[-1]["steer"]["id"].startswith("steer_"))
        self.assertEqual(set(accepted[-1]) - {"stream_id"}, {"type", "sequence_number", "steer"})
        self.assertEqual(accepted[-1].get("stream_id"), stream_id)
        events = [*before, *accepted, *await socket.receive_response(stream_id)]
        assert_valid(events, stream_id)
        after = await socket.receive_response(stream_id)
        assert_valid(after, stream_id)
        return events[-1]["response"], after[-1]["response"]

    async def test_steered_response_ends_in_the_text_and_a_new_one_continues(self) -> None:
        async with self.serving(stuck(WRITING), record_text(HELLO)) as client, self.socket() as socket:
            first, second = await self.steered(socket, WRITING, "response.output_text.delta", instructions="Be kind.")
            self.assertEqual((first["status"], first["incomplete_details"]), ("incomplete", {"reason": "steered"}))
            self.assertEqual([item["status"] for item in first["output"] if item["type"] == "message"], ["incomplete"])
            self.assertGreater(first["usage"]["output_tokens"], 0)
            self.assertEqual((second["status"], second["previous_response_id"]), ("completed", first["id"]))
            self.assertEqual(second["instructions"], "Be kind.")
            self.assertEqual(len(self.engine.aborted), 1)
            prompt = self.prompt(1)
            self.assertTrue(all(word in prompt for word in ("Be kind.", "Tell me a story.", "Once", "Stop.")), prompt)
            for made in (first, second):
                with self.subTest(status=made["status"]):
                    self.assertEqual(orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content), made)
            listed = orjson.loads((await client.get(f"/v1/responses/{second['id']}/input_items?order=asc")).content)["data"]
            self.assertEqual(
                [item["content"][0]["text"] for item in listed if item.get("role") == "user"], ["Tell me a story.", "Stop."]
            )

    async def test_every_frame_is_what_the_types_of_openai_say(self) -> None:
        adapter: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)
        lines = (stuck(WRITING), record_text(HELLO), two_calls(0.5))
        async with self.serving(*lines), self.socket() as socket:
            events: list[dict[str, Any]] = []
            await socket.create(stream_id="a")
            events += await until(socket, "response.output_text.delta")
            await steer(socket, events[0]["response"]["id"])
            events += await until(socket, "response.completed")
            await socket.create(tools=[TOOL])
            events += await until(socket, "response.output_item.done")
            uid = next(event["response"]["id"] for event in reversed(events) if event["type"] == "response.created")
            await steer(socket, uid)
            events += await until(socket, "response.steer.pending")
            await steer(socket, "resp_unknown", [{"type": "message", "role": "user", "content": "Stop."}])
            events += await until(socket, "response.steer.failed")
            await socket.create(temperature=9)
            events += await until(socket, "error")
            for event in events:
                parsed = adapter.validate_python(event)
                self.assertEqual(parsed.type, event["type"])
                self.assertEqual(parsed.stream_id, event.get("stream_id"))
                self.assertEqual(set(parsed.model_extra or {}) - {"obfuscation"}, set(), event["type"])

    async def test_in_the_middle_of_a_thought_on_a_named_stream_and_unstored(self) -> None:
        async with self.serving(stuck(THINKING), record_text(HELLO)), self.socket() as socket:
            first, second = await self.steered(socket, THINKING, "response.reasoning_text.delta", stream_id="a", store=False)
            self.assertEqual([item["type"] for item in first["output"]], ["reasoning"])
            self.assertEqual(second["status"], "completed")

    async def test_in_the_middle_of_a_call_which_is_left_out_then(self) -> None:
        async with self.serving(stuck(CALLING), record_text(HELLO)), self.socket() as socket:
            first, second = await self.steered(socket, CALLING, "response.function_call_arguments.delta", tools=[TOOL])
            self.assertEqual([item["status"] for item in first["output"]], ["incomplete"])
            self.assertNotIn('{"ci', self.prompt(1))
            self.assertEqual(second["status"], "completed")

    async def test_before_any_output(self) -> None:
        async with self.serving(Recording([Delay(60), Tokens(tokens(HELLO))]), record_text(HELLO)), self.socket() as socket:
            first, second = await self.steered(socket, "", "response.in_progress")
            self.assertEqual((first["status"], first["output"]), ("incomplete", []))
            self.assertEqual(second["status"], "completed")

    async def test_the_successor_comes_before_what_was_asked_next(self) -> None:
        async with self.serving(stuck(WRITING), record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            await socket.create()
            uid = (await until(socket, "response.output_text.delta"))[0]["response"]["id"]
            await socket.create("Another story.")
            await steer(socket, uid)
            await until(socket, "response.incomplete")
            second, third = (await socket.receive_response())[-1]["response"], (await socket.receive_response())[-1]["response"]
            self.assertEqual((second["previous_response_id"], third["previous_response_id"]), (uid, None))

    async def test_with_a_complete_call_it_waits_for_the_output(self) -> None:
        async with self.serving(two_calls(0.5), record_text(HELLO)), self.socket() as socket:
            await socket.create(tools=[TOOL])
            before = await until(socket, "response.output_item.done")
            uid = before[0]["response"]["id"]
            for text in ("One more.", "And another."):
                await steer(socket, uid, text)
            first = (await until(socket, "response.completed"))[-1]["response"]
            calls = [item["call_id"] for item in first["output"]]
            pending = [await socket.receive() for _ in range(2)]
            stubs = [{"type": "function_call_output", "call_id": call, "name": "get_weather"} for call in calls]
            for event in pending:
                self.assertEqual(event["type"], "response.steer.pending")
                self.assertEqual((event["reason"], event["required_input"]), ("waiting_for_required_input", stubs))
            answers = [{**stub, "output": "sunny"} for stub in stubs]
            for answer in answers:
                del answer["name"]
            second = await socket.create_response(answers, previous_response_id=uid, tools=[TOOL])
            self.assertEqual(second["status"], "completed")
            prompt = self.prompt(1)
            self.assertLess(prompt.index("One more."), prompt.index("And another."))

    async def test_pending_message_returns_if_the_stream_continues_elsewhere(self) -> None:
        async with self.serving(two_calls(0.5), record_text(HELLO)), self.socket() as socket:
            await socket.create(tools=[TOOL])
            before = await until(socket, "response.output_item.done")
            await steer(socket, before[0]["response"]["id"], "One more.")
            await until(socket, "response.steer.pending")
            await socket.create()
            events = await until(socket, "response.completed")
            self.assertEqual(events[0]["type"], "response.steer.failed")
            self.assertEqual((events[0]["error"]["code"], events[0]["steer"]["input"]), ("response_not_active", "One more."))

    async def test_pending_message_returns_if_the_next_request_is_invalid(self) -> None:
        async with self.serving(two_calls(0.5)), self.socket() as socket:
            await socket.create(tools=[TOOL])
            uid = (await until(socket, "response.output_item.done"))[0]["response"]["id"]
            await steer(socket, uid, "One more.")
            await until(socket, "response.steer.pending")
            await socket.create([], previous_response_id=uid)
            failed, error = await socket.receive(), await socket.receive()
            self.assertEqual((failed["type"], failed["error"]["code"]), ("response.steer.failed", "successor_creation_failed"))
            self.assertEqual(error["type"], "error")

    async def test_a_successor_that_cannot_begin_gives_it_back(self) -> None:
        async with self.serving(stuck(WRITING)), self.socket() as socket:
            await socket.create()
            uid = (await until(socket, "response.output_text.delta"))[0]["response"]["id"]
            await steer(socket, uid, "word " * 140_000)
            events = await until(socket, "response.steer.failed")
            self.assertEqual(events[-1]["error"]["code"], "successor_creation_failed")
            self.assertEqual(events[-2]["response"]["incomplete_details"], {"reason": "steered"})
            self.assertTrue(events[-1]["steer"]["id"].startswith("steer_"))

    @pytest.mark.slow
    async def test_pending_message_returns_if_the_response_fails(self) -> None:
        slow = Recording([Tokens(tokens(CALL + "<|end|>")), Delay(3), Fault("bad", "no")])
        async with self.serving(slow), self.socket() as socket:
            await socket.create(tools=[TOOL])
            uid = (await until(socket, "response.output_item.done"))[0]["response"]["id"]
            await steer(socket, uid)
            events = await until(socket, "response.steer.failed")
            self.assertEqual(events[-1]["error"]["code"], "response_not_active")
            self.assertEqual(events[-2]["type"], "response.failed")

    async def failed(self, socket: SocketClient, uid: str, input: Any = "Stop.", **more: Any) -> str:
        await steer(socket, uid, input, **more)
        event = (await until(socket, "response.steer.failed"))[-1]
        self.assertEqual(event["steer"], {"input": input, "previous_response_id": uid})
        self.assertEqual(set(event["error"]), {"type", "code", "message"})
        code: str = event["error"]["code"]
        return code

    async def test_unknown_and_ended_responses_cannot_be_steered(self) -> None:
        async with self.serving(record_text(HELLO), stuck(WRITING), stuck(WRITING)), self.socket() as socket:
            self.assertEqual(await self.failed(socket, "resp_unknown"), "response_not_found")
            made = await socket.create_response()
            self.assertEqual(await self.failed(socket, made["id"]), "response_already_completed")
            await socket.create()
            uid = (await until(socket, "response.output_text.delta"))[0]["response"]["id"]
            wrong: list[Any] = [
                "",
                [],
                7,
                [{"role": "assistant", "content": "No."}],
                [{"role": "developer", "content": "No."}],
                [{"type": "function_call_output", "call_id": "call_1", "output": "No."}],
                [{"role": "user", "content": [{"type": "input_text"}]}],
            ]
            for input in wrong:
                with self.subTest(input=input):
                    self.assertEqual(await self.failed(socket, uid, input), "invalid_input")
            self.assertEqual(await self.failed(socket, uid, stream_id="a"), "invalid_input")
            await socket.create(
                stream_id="b", context_management=[{"type": "compaction", "compact_threshold": 100_000}], store=False
            )
            event = (await until(socket, "response.in_progress"))[-1]
            self.assertEqual(await self.failed(socket, event["response"]["id"]), "steering_not_supported")

    async def test_too_many(self) -> None:
        async with self.serving(two_calls(2)), self.socket() as socket:
            await socket.create(tools=[TOOL])
            uid = (await until(socket, "response.output_item.done"))[0]["response"]["id"]
            for _ in range(steering.MAX_PENDING_STEERS):
                await steer(socket, uid)
            await until(socket, "response.steer.accepted", steering.MAX_PENDING_STEERS)
            self.assertEqual(await self.failed(socket, uid), "too_many_pending_steers")
