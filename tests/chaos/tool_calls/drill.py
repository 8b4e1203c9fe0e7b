"""Drill: a response with tool calls for each place, its process killed there, and the log that another process completes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from responses_app.protocol.conformance import validate
from responses_app.protocol.reducer import fold
from tests.chaos.findings import Findings
from tests.chaos.load.http import ConnectionBroken, HttpClient, ReceivedBlock
from tests.chaos.system.processes import WebProcess
from tests.chaos.tool_calls.counting_server import GUARDED, IDEMPOTENT, OUTPUT, SAFE, UNSAFE
from tests.chaos.tool_calls.places import KillPlace
from tests.chaos.tool_calls.system import ANSWER, APPROVAL, PLAIN, TOOL, ToolSystem
from tests.chaos.waits import pause

# Tools that must not run twice.
ONCE = (UNSAFE, GUARDED)
END_LIMIT_S = 60.0


class ToolCallDrill:
    """Drill over a started system."""

    def __init__(self, system: ToolSystem, findings: Findings) -> None:
        self._system, self._findings = system, findings
        self._http = HttpClient(system.key)
        self._seconds: list[float] = []

    async def run(self, places: Sequence[KillPlace]) -> None:
        """Kill at each place in turn, alternating between the web processes."""
        try:
            for number, place in enumerate(places):
                await self._system.wait_until_up()
                await self._kill_at(place, self._system.webs[number % 2], self._system.webs[1 - number % 2])
            await self._system.wait_until_up()
        finally:
            await self._http.close()
        if self._seconds:
            self._findings.row("from kill to end of the response", f"at most {max(self._seconds):.1f} s")

    async def _kill_at(self, place: KillPlace, web: WebProcess, other: WebProcess) -> None:
        body = await self._body(place, web)
        before = {tool: self._system.runs(tool) for tool in (*ONCE, SAFE, IDEMPOTENT)}
        if place.closed:
            self._system.close_gate()
        seen, killed = await self._stream_until_kill(place, web, body, before)
        self._system.restart_in_background(web)
        uid = json.loads(seen[0].data)["response"]["id"]
        if place.closed:
            self._system.open_gate()
        log = await self._log(other, uid)
        self._seconds.append(time.monotonic() - killed)
        runs = {tool: self._system.runs(tool) - count for tool, count in before.items()}
        self._check_log(uid, place, seen, log)
        await self._check_get(uid, other, log)
        self._check_runs(uid, place, json.loads(log[-1].data)["response"], runs)
        repeats = ", ".join(f"{tool} {count}" for tool, count in runs.items())
        sys.stdout.write(f"{place}: {self._seconds[-1]:.1f} s, {len(seen)} of {len(log)} events seen; runs: {repeats}\n")
        sys.stdout.flush()

    async def _body(self, place: KillPlace, web: WebProcess) -> dict[str, Any]:
        """Return the request; for an approved call, make the response that requests the approval first."""
        common = {"model": self._system.model, "tools": [TOOL], "temperature": 0}
        if not place.approved:
            return {**common, "input": PLAIN, "stream": True}
        first = (await self._http.request(web, "POST", "/v1/responses", {**common, "input": APPROVAL})).json
        request = next(item for item in first["output"] if item["type"] == "mcp_approval_request")
        answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
        return {**common, "input": [answer], "previous_response_id": first["id"], "stream": True}

    async def _stream_until_kill(
        self, place: KillPlace, web: WebProcess, body: dict[str, Any], before: dict[str, int]
    ) -> tuple[list[ReceivedBlock], float]:
        """Stream the response and kill `web` at `place`. Return the events that the client has seen, and the time of the kill."""
        seen: list[ReceivedBlock] = []
        reached = asyncio.Event()

        async def read() -> None:
            with suppress(ConnectionBroken, ValueError):
                async with self._http.stream(web, "POST", "/v1/responses", body) as stream:
                    async for block in stream.blocks():
                        seen.append(block)
                        if block.number == place.event:
                            reached.set()

        reader = asyncio.create_task(read())
        async with asyncio.timeout(END_LIMIT_S):
            if place.tool is not None:
                await self._system.wait_for_run(place.tool, before[place.tool])
            else:
                await reached.wait()
        if place.delay_s:
            await pause(place.delay_s)
        web.state = "down"
        web.send(signal.SIGKILL)
        killed = time.monotonic()
        await asyncio.to_thread(web.end, END_LIMIT_S)
        await reader
        return [block for block in seen if block.number is not None], killed

    async def _log(self, web: WebProcess, uid: str) -> list[ReceivedBlock]:
        """Follow the response to the end."""
        async with asyncio.timeout(END_LIMIT_S):
            path = f"/v1/responses/{uid}?stream=true&include_obfuscation=false"
            async with self._http.stream(web, "GET", path) as stream:
                return [block async for block in stream.blocks() if block.number is not None]

    def _check_log(self, uid: str, place: KillPlace, seen: Sequence[ReceivedBlock], log: Sequence[ReceivedBlock]) -> None:
        """Check that the log is lawful, that the client has seen its beginning, and that fold is the terminal snapshot."""
        events = [json.loads(block.data) for block in log]
        for broken in validate(events):
            self._findings.contradict(uid, f"{place}: breaks {broken.rule}: {broken.message}", number=broken.number)
        if [block.data for block in seen] != [block.data for block in log[: len(seen)]]:
            self._findings.contradict(uid, f"{place}: the client has seen something else")
        if fold(events) != events[-1].get("response"):
            self._findings.contradict(uid, f"{place}: fold is not the terminal snapshot")
        self._findings.count("events of all logs", len(log))

    async def _check_get(self, uid: str, web: WebProcess, log: Sequence[ReceivedBlock]) -> None:
        got = (await self._http.request(web, "GET", f"/v1/responses/{uid}")).json
        if got != json.loads(log[-1].data)["response"]:
            self._findings.contradict(uid, "GET is not the terminal snapshot")

    def _check_runs(self, uid: str, place: KillPlace, response: dict[str, Any], runs: dict[str, int]) -> None:
        """Check the answer, and that the runs of each tool fit its item."""
        texts = [part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]]
        if response["status"] != "completed" or texts != [ANSWER]:
            self._findings.contradict(uid, f"{place}: is {response['status']}", seen=response["error"] or response["output"])
        calls = [item for item in response["output"] if item["type"] == "mcp_call"]
        for item in calls:
            count, succeeded = runs[item["name"]], item["output"] == OUTPUT
            self._findings.count(f"{place.stage}: '{item['name']}' ran {count} times, {item['status']}")
            if item["name"] in ONCE and count > 1:
                self._findings.contradict(uid, f"{place}: '{item['name']}' ran {count} times")
            if item["name"] not in ONCE and not succeeded:
                self._findings.contradict(uid, f"{place}: '{item['name']}' has failed", seen=item["error"])
            if succeeded and count < 1:
                self._findings.contradict(uid, f"{place}: '{item['name']}' has an output and did not run")
        if len(calls) != (1 if place.approved else 3):
            self._findings.contradict(uid, f"{place}: {len(calls)} calls", seen=calls)
