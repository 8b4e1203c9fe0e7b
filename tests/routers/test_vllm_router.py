"""vllm-router in front of two engines: sessions, cancellation, and the death of an engine in the middle of streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

from tests.support import plain_http
from tests.support.engines.routed import Routed
from tests.support.waiting import LIMIT_S, wait_until

# Two engines get all of 16 sessions at one in 32,768 runs.
SESSIONS, STREAMS = 16, 8
LONG = {"max_output_tokens": 700, "ignore_eos": True}
FINISHED = "vllm:request_success_total"
RUNNING = "vllm:num_requests_running"


def test_turns_of_a_session_reach_the_same_engine(routed: Routed) -> None:
    engines = [_engine_of(routed, prompt_cache_key=f"session {number}") for number in range(SESSIONS)]
    assert set(engines) == {0, 1}
    assert [_engine_of(routed, prompt_cache_key=f"session {number}") for number in range(SESSIONS)] == engines


def test_client_that_leaves_ends_the_generation_behind_the_router(routed: Routed) -> None:
    with _streaming(routed, "Count.", max_output_tokens=8000, ignore_eos=True) as events:
        next(event for event in events if event["type"].endswith(".delta"))
        assert sum(routed.figure(RUNNING)) == 1
    wait_until(lambda: sum(routed.figure(RUNNING)) == 0, limit_s=LIMIT_S, poll_s=0.2)


def test_streams_complete_when_an_engine_is_killed(routed: Routed) -> None:
    all_running = Barrier(STREAMS + 1)

    def read(number: int) -> list[Mapping[str, Any]]:
        with _streaming(routed, f"Tell me story {number}.", **LONG) as events:
            seen = [next(events)]
            seen += [next(events) for _ in range(20)]
            all_running.wait(LIMIT_S)
            return [*seen, *events]

    with ThreadPoolExecutor(STREAMS) as pool:
        reading = [pool.submit(read, number) for number in range(STREAMS)]
        all_running.wait(LIMIT_S)
        running = routed.figure(RUNNING)
        routed.engines[1][0].kill()
        streams = [read.result(LIMIT_S) for read in reading]
    assert min(running) > 0, "the router gave all streams to one engine"
    assert {events[-1]["type"] for events in streams} <= {"response.completed", "response.incomplete"}
    for events in streams:
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        stored = _get(routed, events[-1]["response"]["id"])
        assert stored["output"] == events[-1]["response"]["output"]
    assert routed.server.ask(model="demo-chat", max_output_tokens=16).status_code == 200


def _engine_of(routed: Routed, **more: Any) -> int:
    """Return the number of the engine that a request reaches."""
    before = routed.figure(FINISHED)
    assert routed.server.ask(model="demo-chat", max_output_tokens=16, **more).status_code == 200

    def changed() -> list[int]:
        after = routed.figure(FINISHED)
        return [number for number in range(2) if after[number] > before[number]]

    wait_until(changed, limit_s=LIMIT_S, poll_s=0.05)
    (number,) = changed()
    return number


@contextmanager
def _streaming(routed: Routed, text: str, **more: Any) -> Iterator[Iterator[Mapping[str, Any]]]:
    """Send a request, and yield the events of its stream."""
    body = {"model": "demo-chat", "input": text, "stream": True, **more}
    headers = {"Authorization": f"Bearer {routed.server.key}"}
    with plain_http.stream("POST", f"{routed.server.url}/v1/responses", json=body, headers=headers, timeout=LIMIT_S) as answer:
        assert answer.status_code == 200, answer.read()
        yield (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: {"))


def _get(routed: Routed, response_id: str) -> Mapping[str, Any]:
    answer = plain_http.get(
        f"{routed.server.url}/v1/responses/{response_id}", headers={"Authorization": f"Bearer {routed.server.key}"}
    )
    stored: Mapping[str, Any] = answer.raise_for_status().json()
    return stored
