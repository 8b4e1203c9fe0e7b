"""CPU time of a request up to the first event and of the end of the response, by stage, in this process.

    python -m bench.starts [--requests 1000] [--rounds 3] [--unstored] [--profile FILE]

The ASGI application is called without a transport, on a Postgres of its own, with a recording as the engine. All requests begin
at once; the recording waits until all have begun. `--profile` writes a profile of cProfile of the whole starts to FILE.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psutil

from bench.support.database import database
from bench.support.servers import ROOT

KEY = "sk-bench"
MODEL = "tape"
# Seconds that the recording waits, for each request that begins meanwhile.
WAIT_S = 0.006
SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "POST",
    "path": "/v1/responses",
    "raw_path": b"/v1/responses",
    "root_path": "",
    "scheme": "http",
    "query_string": b"",
    "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {KEY}".encode()), (b"content-type", b"application/json")],
    "client": ["127.0.0.1", 1],
    "server": ["127.0.0.1", 2],
}


class StartClient:
    """Client of a streaming request to the ASGI application."""

    def __init__(self, number: int, *, store: bool) -> None:
        self.body = orjson.dumps({"model": MODEL, "input": f"{number}", "stream": True, "store": store})
        self.begun = asyncio.Event()
        self._sent, self._open = False, asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        """Return the body, then wait."""
        if self._sent:
            await self._open.wait()
        self._sent = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        """Note the first event."""
        if message["type"] == "http.response.body" and message.get("body"):
            self.begun.set()


def cpu(postgres: int) -> tuple[float, float]:
    """Return the CPU seconds so far of this process and of Postgres."""
    parent = psutil.Process(postgres)
    times = [one.cpu_times() for one in (parent, *parent.children(recursive=True))]
    return time.process_time(), sum(one.user + one.system for one in times)


async def whole(requests: int, postgres: int, *, store: bool, profile: cProfile.Profile | None) -> dict[str, float]:
    """Begin `requests` requests at once and wait for their ends. Return CPU µs a request of both phases, and the median latency."""
    from project.asgi import application

    clients = [StartClient(number, store=store) for number in range(requests)]
    firsts: list[float] = []
    began, before = time.perf_counter(), cpu(postgres)

    async def first(client: StartClient) -> None:
        await client.begun.wait()
        firsts.append(time.perf_counter() - began)

    if profile is not None:
        profile.enable()
    tasks = [asyncio.ensure_future(application(SCOPE, one.receive, one.send)) for one in clients]
    await asyncio.gather(*map(first, clients))
    if profile is not None:
        profile.disable()
    middle = cpu(postgres)
    await asyncio.gather(*tasks)
    after = cpu(postgres)
    spent = [
        1e6 * (b - a) / requests for one, two in ((before, middle), (middle, after)) for a, b in zip(one, two, strict=True)
    ]
    names = ("start: web", "start: postgres", "tokens and end: web", "tokens and end: postgres")
    return {**dict(zip(names, spent, strict=True)), "median ms to the first event": 1000 * statistics.median(firsts)}


async def stages(requests: int) -> dict[str, float]:
    """Return the CPU µs per request of the stages of a start, each called separately."""
    from django.urls import resolve

    from responses_app.access.api_keys import authenticate_header
    from responses_app.runs import manager
    from responses_app.runs.ids import new_id
    from responses_app.runs.new_run import RunOwner, create_run
    from responses_app.runs.prepare.planner import plan
    from responses_app.runs.prepare.prompt_context import PromptContext
    from responses_app.schemas import create_response
    from responses_app.validation import json_body

    hub = manager.current()
    key, served = await authenticate_header(f"Bearer {KEY}"), hub.model(MODEL)
    body = StartClient(1, store=True).body
    request = create_response.parse_request(json_body.parse(body), key)
    planned = await plan(PromptContext(new_id("resp_"), request, served))
    services = await hub.start()
    owner = RunOwner(services.recorder, services.lease_keeper.worker)

    async def opened() -> None:
        run = create_run(request, planned, owner)
        run.writer.open()

    return {
        "resolve the URL": await _cost(requests, lambda: _done(resolve("/v1/responses"))),
        "authenticate": await _cost(requests, lambda: authenticate_header(f"Bearer {KEY}")),
        "parse and validate": await _cost(requests, lambda: _done(create_response.parse_request(json_body.parse(body), key))),
        "plan and render": await _cost(requests, lambda: plan(PromptContext(new_id("resp_"), request, served))),
        "create the run": await _cost(requests, opened),
    }


async def _done(value: object) -> None:
    del value


async def _cost(times: int, call: Callable[[], Awaitable[object]]) -> float:
    began = time.process_time()
    for _ in range(times):
        await call()
    return 1e6 * (time.process_time() - began) / times


async def log_stages(requests: int, batch: int = 16) -> dict[str, float]:
    """Return CPU µs a response, in this process, of the commits that open and that end `batch` responses."""
    from asgiref.sync import sync_to_async

    from responses_app.runs import manager
    from responses_app.store.log.group_commit import write

    worker, opening, ending = await manager.current().worker(), 0.0, 0.0
    for number in range(requests // batch):
        opens, ends = await sync_to_async(_appends)(number, batch, worker)
        before = time.process_time()
        await sync_to_async(write)(opens)
        middle = time.process_time()
        await sync_to_async(write)(ends)
        opening, ending = opening + middle - before, ending + time.process_time() - middle
    rows = requests // batch * batch
    return {"commit of openings": 1e6 * opening / rows, "commit of endings": 1e6 * ending / rows}


def _appends(first: int, count: int, worker: UUID) -> tuple[list[Any], list[Any]]:
    """Return the appends that open and that end `count` responses, with two events and with a single event."""
    from responses_app.models import ApiKey, Response
    from responses_app.protocol.encoding import EventFrame
    from responses_app.runs.execute.response_object import usage
    from responses_app.runs.ids import new_id
    from responses_app.store.log.records import Append, Ending, RequestRecord, ResponseLog

    key, now = ApiKey.objects.get(), datetime.now(UTC)
    opens, ends = [], []
    for number in range(first, first + count):
        uid = new_id("resp_")
        row = Response(uid=uid, project=key.project, key_id=key.pk, model=MODEL, thread=uid, created_at=now, streamed=True)
        log = ResponseLog(row, [_item("msg", f"{number}")], request=RequestRecord("{}", range(70), MODEL), worker=worker)
        frames = [EventFrame(at, "response.in_progress", b'{"response":"%b"}' % (b"x" * 1400)) for at in range(3)]
        opens.append(Append(log, frames[:2], opens=True))
        ending = Ending("completed", now, [_item("msg", "Yes")], usage(70, 0, 5, 0))
        ends.append(Append(log, frames[2:], ending=ending))
    return opens, ends


def _item(prefix: str, text: str) -> dict[str, Any]:
    from responses_app.runs.ids import new_id

    return {"id": new_id(f"{prefix}_"), "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def tape(folder: Path, wait_s: float) -> Path:
    """Write a recording that waits for `wait_s` seconds, and answers with a single word."""
    from openai_harmony import load_harmony_encoding

    encode = load_harmony_encoding("HarmonyGptOss").encode
    ids = encode("<|channel|>final<|message|>Yes<|return|>", allowed_special="all")
    path = folder / "tape.jsonl"
    path.write_bytes(orjson.dumps({"chunks": [{"delay": wait_s}, {"tokens": ids}]}))
    return path


async def _measure(options: argparse.Namespace, postgres: int, profile: cProfile.Profile | None) -> list[dict[str, float]]:
    from responses_app.runs import manager
    from responses_app.runs.garbage import THRESHOLDS
    from responses_app.server.processes.startup import THREAD_SWITCH_S

    await whole(64, postgres, store=True, profile=None)
    gc.collect()
    gc.freeze()
    # As in a web process.
    gc.set_threshold(*THRESHOLDS)
    sys.setswitchinterval(THREAD_SWITCH_S)
    rounds = []
    for _ in range(options.rounds):
        one = await whole(options.requests, postgres, store=not options.unstored, profile=profile)
        rounds.append(one | await stages(options.requests) | await log_stages(options.requests))
    await manager.current().close()
    return rounds


def main() -> None:
    """Measure, and print a table of medians."""
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unstored", action="store_true")
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory() as folder:
        recording = tape(Path(folder), options.requests * WAIT_S)
        os.environ["RESPONSES_MODELS"] = (
            f"{MODEL}=script://{recording}?loop=1&tokenizer={ROOT}/responses_app/demo/harmony_files"
        )
        environ = {"RESPONSES_LOG_LEVEL": "WARNING", "RESPONSES_MAX_CONCURRENT": str(2 * options.requests)}
        with database(environ) as postgres, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            from responses_app.models import ApiKey

            ApiKey.make("bench", secret=KEY)
            rounds = runner.run(_measure(options, postgres, profile))
    print("| CPU µs a request | median |\n|---|---|")
    for name in rounds[0]:
        print(f"| {name} | {statistics.median(one[name] for one in rounds):.0f} |")
    if profile is not None:
        profile.dump_stats(options.profile)


if __name__ == "__main__":
    main()
