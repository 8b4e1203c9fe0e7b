"""`response.create` on the default stream: requests in order, with the same events as over SSE."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import override_settings

from responses_app.engines.replay.engine import Fault, Recording, Tokens
from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import CreateRequest
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, record_text, tokens
from tests.support.api.websocket_case import SocketCase, assert_valid, error

BROKEN = {"type": "grammar", "syntax": "lark", "definition": "start:("}


def without_ids(value: Any) -> Any:
    """Remove ids, times and padding, which differ between responses."""
    if isinstance(value, dict):
        hidden = ("id", "item_id", "call_id", "created_at", "completed_at", "obfuscation", "previous_response_id")
        return {key: without_ids(one) for key, one in value.items() if key not in hidden}
    return [without_ids(one) for one in value] if isinstance(value, list) else value


class SocketCreateTest(SocketCase):
    async def test_the_events_are_those_of_sse(self) -> None:
        async with self.serving(record_text(THOUGHT), record_text(THOUGHT)) as client, self.socket() as socket:
            streamed = await self.stream(client)
            await socket.create()
            events = await socket.receive_response()
            assert_valid(events)
            self.assertEqual(without_ids(events), without_ids(streamed))
            self.assertTrue(all("obfuscation" in event for event in events if event["type"].endswith(".delta")))

    async def test_the_events_equal_the_stored_and_replayed_events(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client, self.socket() as socket:
            await socket.create(stream_options={"include_obfuscation": False}, stream_id="a")
            events = await socket.receive_response("a")
            response = events[-1]["response"]
            got = await client.get(f"/v1/responses/{response['id']}")
            self.assertEqual(orjson.loads(got.content), response)
            replayed = await self.read(
                await client.get(f"/v1/responses/{response['id']}?stream=true&include_obfuscation=false")
            )
            self.assertEqual([{**event, "stream_id": "a"} for event in replayed], events)

    async def test_responses_are_stored_with_the_id_of_the_request_that_opened_the_connection(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            made = [await socket.create_response(), await socket.create_response()]
        stored_responses = Response.objects.filter(uid__in=[one["id"] for one in made]).values_list("request_id", flat=True)
        ids = {one async for one in stored_responses}
        self.assertEqual(len(ids), 1)
        self.assertRegex(ids.pop(), r"^req_[0-9a-f]{48}$")

    async def test_two_that_are_sent_at_once_are_made_one_after_the_other(self) -> None:
        async with self.serving(record_text(HELLO), record_text(THOUGHT)), self.socket() as socket:
            await socket.create()
            await socket.create()
            first, second = await socket.receive_response(), await socket.receive_response()
            assert_valid(first)
            assert_valid(second)
            self.assertNotEqual(first[0]["response"]["id"], second[0]["response"]["id"])

    async def test_an_open_responses_client_gets_events_of_that_profile(self) -> None:
        async with self.serving(record_text(THOUGHT)), self.socket("/openresponses/v1/responses") as socket:
            await socket.create()
            types = {event["type"] for event in await socket.receive_response()}
            self.assertIn("response.reasoning.delta", types)
            self.assertNotIn("response.reasoning_text.delta", types)

    async def test_stream_is_ignored_and_background_is_refused(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket() as socket:
            bodies: list[dict[str, Any]] = [{"stream": True}, {"stream": False, "background": False, "generate": True}]
            for fields in bodies:
                with self.subTest(fields=fields):
                    self.assertEqual((await socket.create_response(**fields))["status"], "completed")
            refused = await socket.create_rejected(background=True)
            self.assertEqual(
                (refused["status"], refused["code"], refused["param"]), (400, "unsupported_parameter", "background")
            )

    async def test_invalid_requests_have_the_same_errors_as_over_http_and_the_socket_stays_usable(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"model": "none"},
            {"temperature": "hot"},
            {"surprise": 1},
            {"tools": [{"type": "web"}]},
            {"tools": [{"type": "custom", "name": "c", "format": BROKEN}]},
            {"previous_response_id": "resp_missing"},
            {"conversation": "conv_missing"},
            {"input": None},
            {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}]},
        ]
        async with self.serving(record_text(HELLO)) as client, self.socket() as socket:
            for fields in wrong:
                with self.subTest(fields=fields):
                    over_http = await self.post(client, **fields)
                    await socket.send(**{"type": "response.create", "model": "m", "input": "Hi", **fields})
                    (event,) = await socket.receive_response()
                    details = error(event)
                    expected = orjson.loads(over_http.content)["error"]
                    self.assertEqual(details.pop("status"), over_http.status_code)
                    self.assertEqual(details, {**expected, "code": expected["code"] or expected["type"]})
            self.assertEqual((await socket.create_response())["status"], "completed")

    async def test_invalid_frames_are_answered_and_the_socket_stays_usable(self) -> None:
        wrong = {
            "{": ("invalid_json", None),
            "[]": ("invalid_json", None),
            '"response.create"': ("invalid_json", None),
            "{}": ("missing_required_parameter", "type"),
            '{"type": 7}': ("invalid_type", "type"),
            '{"type": "response.inject"}': ("invalid_value", "type"),
            '{"type": "response.steer"}': ("missing_required_parameter", "previous_response_id"),
            '{"type": "response.create", "stream_id": ""}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": 7}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": "a b"}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": "é"}': ("invalid_stream_id", "stream_id"),
            f'{{"type": "response.create", "stream_id": "{"a" * 257}"}}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "model": "m", "input": "Hi", "generate": "no"}': ("invalid_type", "generate"),
        }
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            for text, (code, param) in wrong.items():
                with self.subTest(text=text, code=code, param=param):
                    await socket.socket.send_to(text_data=text)
                    details = error(await socket.receive())
                    self.assertEqual((details["status"], details["code"], details["param"]), (400, code, param), text)
            await socket.socket.send_to(bytes_data=b"{}")
            self.assertEqual(error(await socket.receive())["code"], "invalid_json")
            self.assertEqual((await socket.create_response())["status"], "completed")

    async def test_a_failure_has_no_error_event_also_in_a_replay(self) -> None:
        broken = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Fault("down", "killed")])
        async with self.serving(broken) as client, self.socket() as socket:
            await socket.create()
            events = await socket.receive_response()
            self.assertEqual(events[-1]["type"], "response.failed")
            assert_valid(events)
            uid = events[-1]["response"]["id"]
            replayed = await self.read(await client.get(f"/v1/responses/{uid}?stream=true"))
            self.assertNotIn("error", {event["type"] for event in [*events, *replayed]})

    async def test_the_stored_request_keeps_the_options_for_takeover(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            for generate in (True, False):
                with self.subTest(generate=generate):
                    made = await socket.create_response(generate=generate)
                    prompt = await StoredRequest.objects.aget(response__uid=made["id"])
                    order = CreateRequest.load(prompt.create_request, [])
                    self.assertEqual((order.emit_error_event, order.generate, order.stream), (False, generate, True))

    async def test_a_tool_is_called_and_answered(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO)), self.socket() as socket:
            first = await socket.create_response(tools=[TOOL])
            call = first["output"][-1]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            second = await socket.create_response([output], tools=[TOOL], previous_response_id=first["id"])
            self.assertEqual(second["output"][-1]["content"][0]["text"], "Hello there!")
            self.assertEqual(second["previous_response_id"], first["id"])

    async def test_a_refused_request_stores_nothing(self) -> None:
        with override_settings(RESPONSES_MAX_CONCURRENT=0):
            async with self.serving(), self.socket() as socket:
                self.assertEqual((await socket.create_rejected())["status"], 429)
        self.assertEqual(await Response.objects.acount(), 0)
