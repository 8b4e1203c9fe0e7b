"""Parts of the chaos test: faults and load by the seed, and a proof that notices contradictions."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from responses_app.protocol.deltas import TextDelta
from responses_app.protocol.writer import Writer
from tests.chaos.faults.injector import schedule
from tests.chaos.findings import Findings
from tests.chaos.load import cases
from tests.chaos.load.cases import Case
from tests.chaos.load.client import ChaosClient, ResponseRecord
from tests.chaos.load.follower import StreamFollower
from tests.chaos.load.http import ChaosStream, HttpAnswer, HttpClient, ReceivedBlock, block
from tests.chaos.options import ChaosOptions, parse
from tests.chaos.proof.checks import Proof
from tests.chaos.system.moments import Moments
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import System
from tests.support.protocol.response_strategies import USAGE, counted, response
from tests.support.waiting import run_ready_tasks


def test_seed_decides_faults_and_load() -> None:
    options = parse(["--kills", "16", "--responses", "50"])
    assert (options.engine_kills, options.stops, options.pauses, options.cuts, options.restarts) == (1, 2, 2, 16, 1)
    assert (options.blackouts, options.seconds) == (0, 1800 + 16 * 30)
    assert parse(["--kills", "200"]).blackouts == 10
    assert schedule(options) == schedule(options) != schedule(parse(["--kills", "16", "--responses", "50", "--seed", "2"]))
    assert cases.load(50, 1) == cases.load(50, 1) != cases.load(50, 2)
    assert parse(["--engine", "script", "--engine-kills", "3"]).engine_kills == 0
    with pytest.raises(SystemExit):
        parse(["--web", "1"])


def test_moment_wakes_the_waiting_task() -> None:
    async def main() -> None:
        moments, web = Moments(), cast("WebProcess", TWO[0])
        moments.notify("end", web)  # No task waits.
        waiting = asyncio.create_task(moments.wait("end", 5))
        await run_ready_tasks()
        moments.notify("accept", web)
        assert not waiting.done()
        moments.notify("end", web)
        assert await waiting is web
        assert await moments.wait("end", 0.01) is None

    asyncio.run(main())


def log(uid: str = "resp_1", text: tuple[str, ...] = ("Hel", "lo"), **changes: Any) -> list[ReceivedBlock]:
    """Return a complete log in the form of a stream."""
    writer = Writer(response(id=uid, metadata={"case": "0"}, **changes), counted())
    events = [*writer.open(), *(event for one in text for event in writer.write(TextDelta(one)))]
    events += writer.complete(now=2, usage=USAGE, service_tier="default")
    return [ReceivedBlock(event["type"], json.dumps(event).encode(), event["sequence_number"]) for event in events]


def failed(message: str) -> list[ReceivedBlock]:
    """Return the log of a failed response."""
    writer = Writer(response(id="resp_1", metadata={"case": "0"}), counted())
    events = [*writer.open(), *writer.fail("server_error", message, usage=USAGE)]
    return [ReceivedBlock(event["type"], json.dumps(event).encode(), event["sequence_number"]) for event in events]


class ChaosServer:
    """Scripted server; `other` is the log as a second process has it."""

    def __init__(
        self, log: list[ReceivedBlock], other: list[ReceivedBlock] | None = None, got: dict[str, Any] | None = None
    ) -> None:
        self.logs = [log, log if other is None else other]
        self.terminal = json.loads(log[-1].data)["response"]
        self.got = got or self.terminal

    async def request(self, web: object, method: str, path: str, body: object = None) -> HttpAnswer:
        """Answer a plain request."""
        whole = {"data": [self.terminal], "has_more": False} if "?" in path else self.got
        return HttpAnswer(200, json.dumps(whole).encode())

    @asynccontextmanager
    async def stream(self, web: object, method: str, path: str) -> Any:
        """Stream the log of a process, and then of the other."""
        self.logs.append(self.logs[0])
        yield Replay([*self.logs.pop(0), ReceivedBlock("", b"", None)])


class Replay:
    """Scripted stream."""

    def __init__(self, all_: list[ReceivedBlock]) -> None:
        self.all = all_

    async def blocks(self) -> Any:
        for one in self.all:
            yield one


TWO = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
SYSTEM = cast("System", SimpleNamespace(up=TWO, options=ChaosOptions(), moments=Moments()))


def proven(server: ChaosServer, seen: list[ReceivedBlock], case: Case | None = None) -> str:
    """Return the contradictions that the proof finds, a line for each."""
    findings, http = Findings(), cast("HttpClient", server)
    client = ChaosClient(case or Case(0, "plain", {"input": "Hi"}), SYSTEM, http, findings, 1)
    client.records.append(ResponseRecord("resp_1", client.case, [follower(findings)]))
    client.records[0].followers[0].seen = seen
    asyncio.run(Proof(SYSTEM, http, findings, [client]).run())
    return "\n".join(str(one) for one in findings.wrong)


def follower(findings: Findings) -> StreamFollower:
    """Return a follower that has seen no event."""
    return StreamFollower(SYSTEM, cast("HttpClient", None), findings, Random(1), padded=False)


def test_proof_accepts_correct_streams() -> None:
    assert proven(ChaosServer(log()), log()) == ""


@pytest.mark.parametrize(
    ("server", "seen", "wrong"),
    [
        (ChaosServer(log()), log(text=("Hel", "p!")), "a client has seen something else"),
        (ChaosServer(log()), [*log(), ReceivedBlock("x", b"{}", 99)], "a client has seen something else"),
        (ChaosServer(log(), log(text=("Hello",))), [], "two processes replay it differently"),
        (ChaosServer(log()[:3] + log()[4:]), [], "the log has number 4 where 3 is due"),
        (ChaosServer([*log(), log()[-1]]), [], "terminal events at"),
        (
            ChaosServer(log(), got={**json.loads(log()[-1].data)["response"], "model": "x"}),
            [],
            "GET is not the terminal snapshot",
        ),
        (ChaosServer(failed("Something else.")), [], "has failed (plain)"),
        (ChaosServer(failed("It cannot be continued exactly.")), [], "has failed (plain)"),
    ],
)
def test_proof_reports_contradictions(server: ChaosServer, seen: list[ReceivedBlock], wrong: str) -> None:
    assert wrong in proven(server, seen)


def test_proof_accepts_failures_of_constrained_sampling_only() -> None:
    bound = {"input": "Hi", "tool_choice": "required"}
    server = ChaosServer(failed("It cannot be continued exactly."))
    assert proven(server, [], Case(0, "bound", bound)) == ""
    assert "has failed (bound)" in proven(server, [], Case(0, "bound", {**bound, "temperature": 0}))


class ScriptedStream(ChaosStream):
    """Scripted stream of these blocks."""

    def __init__(self, blocks: list[ReceivedBlock]) -> None:
        self.all = blocks

    async def blocks(self) -> Any:
        for one in self.all:
            yield one


END = ReceivedBlock("", b"", None)


@pytest.mark.parametrize(
    ("blocks", "wrong"),
    [
        ([*log(), END], ""),
        ([*log()[:2], *log()[3:], END], "number 3 where 2 was due"),
        ([*log()[:2], *log()[1:], END], "number 1 where 2 was due"),
        ([*log(), log()[-1], END], "an event after the terminal one"),
        ([*log()[:2], END], "[DONE] where there is no end"),
        ([*log(), END, END], "[DONE] where there is no end"),
        (log(), "the stream ended without [DONE]"),
    ],
)
def test_follower_reports_gaps_and_repetitions(blocks: list[ReceivedBlock], wrong: str) -> None:
    findings = Findings()
    asyncio.run(follower(findings).read(ScriptedStream(blocks)))
    assert wrong in "\n".join(str(one) for one in findings.wrong)
    assert bool(findings.wrong) is bool(wrong)


def test_block_is_parsed_without_its_padding() -> None:
    plain = block(b'event: response.output_text.delta\ndata: {"sequence_number":7,"delta":"a"}')
    padded = block(b'event: response.output_text.delta\ndata: {"sequence_number":7,"delta":"a","obfuscation":"xyz"}')
    assert plain == padded
    assert plain.number == 7


@pytest.mark.parametrize("text", [b'data: {"sequence_number":7}', b"event: x\ndata: {}\ndata: {}", b"id: 7"])
def test_malformed_block_is_refused(text: bytes) -> None:
    with pytest.raises((ValueError, KeyError)):
        block(text)
