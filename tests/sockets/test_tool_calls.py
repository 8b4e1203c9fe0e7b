"""Tools of the server over a WebSocket: approvals, and steering while a tool runs."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.api.case import HELLO, record_text, tokens
from tests.support.api.mcp_case import McpCase
from tests.support.api.websocket_case import SocketCase, SocketClient, assert_valid
from tests.support.runs.server_tools import ROME, THOUGHT, TWO_CALLS, GatedEngine, RoundsCase, call, shows
from tests.support.waiting import eventually

DELETE = '<|channel|>commentary to=functions.files__delete <|constrain|>json<|message|>{"path":"a.txt"}<|call|>'
REASON = "Not this file."


async def until(socket: SocketClient, kind: str) -> list[dict[str, Any]]:
    """Receive events up to the first of type `kind`."""
    events = [await socket.receive()]
    while events[-1]["type"] != kind:
        events.append(await socket.receive())
    return events


class SocketApprovalTest(McpCase, SocketCase):
    async def request(self, socket: SocketClient) -> tuple[dict[str, Any], dict[str, Any]]:
        """Create a response that needs an approval. Return the response and the request for the approval."""
        first = await socket.create_response(tools=[self.tool])
        return first, next(item for item in first["output"] if item["type"] == "mcp_approval_request")

    async def test_approved_call_is_made(self) -> None:
        async with self.serving(record_text(DELETE), record_text(HELLO)), self.socket() as socket:
            first, request = await self.request(socket)
            answered = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
            second = await socket.create_response([answered], previous_response_id=first["id"], tools=[self.tool])
            self.assertEqual(self.calls(second), [(request["id"], "deleted a.txt")])

    async def test_denied_call_is_not_made(self) -> None:
        denial = record_text(HELLO, match=shows(REASON))
        async with self.serving(record_text(DELETE), denial), self.socket() as socket:
            first, request = await self.request(socket)
            answered = {
                "type": "mcp_approval_response",
                "approval_request_id": request["id"],
                "approve": False,
                "reason": REASON,
            }
            second = await socket.create_response([answered], previous_response_id=first["id"], tools=[self.tool])
            self.assertEqual((second["status"], self.calls(second)), ("completed", []))


class ToolSteeringTest(RoundsCase, SocketCase):
    """A steer stops the generation; a call under way is made to the end, and the successor has the result."""

    async def test_steering_stops_the_generation_and_waits_for_the_call(self) -> None:
        self.engine = GatedEngine(len(tokens(THOUGHT + call("demo__look", "Rome", "<|end|>"))))
        self.tools.gates = {"Rome": asyncio.Event()}
        async with (
            self.serving(record_text(TWO_CALLS), record_text(HELLO, match=shows(ROME, "Stop."))),
            self.socket() as socket,
        ):
            await socket.create("Compare the cities.")
            events = await until(socket, "response.mcp_call_arguments.done")
            await self.tools.entered.wait()
            await self.engine.reached.wait()
            await socket.send(type="response.steer", previous_response_id=events[0]["response"]["id"], input="Stop.")
            events += await until(socket, "response.steer.accepted")
            # The engine is stopped although the tool still runs.
            await eventually(lambda: len(self.engine.aborted) == 1)
            self.assertEqual(self.tools.cancelled, [])
            self.tools.gates["Rome"].set()
            events += await socket.receive_response()
            assert_valid(events)
            last = events[-1]["response"]
            self.assertEqual((last["status"], last["incomplete_details"]), ("incomplete", {"reason": "steered"}))
            self.assertEqual([(one["status"], one["output"]) for one in self.calls(last)], [("completed", ROME)])
            self.assertEqual(self.tools.runs, ["Rome"])
            after = await socket.receive_response()
            assert_valid(after)
            self.assertEqual(after[-1]["response"]["previous_response_id"], last["id"])

    async def test_cancel_ends_the_call_that_a_steer_waits_for(self) -> None:
        self.tools.gates = {"Rome": asyncio.Event()}
        async with self.serving(record_text(call("demo__look", "Rome"))), self.socket() as socket:
            await socket.create("Compare the cities.")
            uid = (await until(socket, "response.mcp_call_arguments.done"))[0]["response"]["id"]
            await self.tools.entered.wait()
            for text in ("Stop.", "And hurry."):
                await socket.send(type="response.steer", previous_response_id=uid, input=text)
                await until(socket, "response.steer.accepted")
            self.hub.runs[uid].cancel()
            failed = [(await until(socket, "response.steer.failed"))[-1] for _ in range(2)]
            self.assertEqual([one["steer"]["input"] for one in failed], ["Stop.", "And hurry."])
            self.assertEqual(self.tools.cancelled, ["Rome"])
