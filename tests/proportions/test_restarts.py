"""Crashes: a response goes on with the same bytes when its web process or its engine is killed."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.large_model_server import CORE, WEB, LargeModelServer, checked, deltas, text_of
from tests.support.waiting import wait_until

GREEDY: dict[str, Any] = {"input": "Ada", "max_output_tokens": 500, "ignore_eos": True}
LOGPROBS = ["message.output_text.logprobs"]
KILLED_AT = 60


def wait_until_readable(large: LargeModelServer, uid: str) -> None:
    """Wait until the new web process returns the response."""
    wait_until(lambda: large.request("GET", f"/responses/{uid}").status_code == 200, poll_s=0.1)


def test_killed_web_process_continues_its_responses(large: LargeModelServer) -> None:
    """One greedy and one sampled response run when the process is killed."""
    old = large.pid(WEB)
    barrier = threading.Barrier(2, lambda: os.kill(old, signal.SIGKILL), timeout=60)

    def read_until_killed(temperature: int) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []

        def collect(event: dict[str, Any]) -> None:
            seen.append(event)
            if len(seen) == KILLED_AT:
                barrier.wait()

        with pytest.raises(httpx2.HTTPError):
            large.stream(collect, **{**GREEDY, "temperature": temperature, "include": LOGPROBS})
        return seen

    with ThreadPoolExecutor(2) as threads:
        streams = list(threads.map(read_until_killed, (0, 1)))
    large.wait_for_new(WEB, old)
    for seen in streams:
        uid = seen[0]["response"]["id"]
        wait_until_readable(large, uid)
        events = checked([*seen, *large.replay(uid, seen[-1]["sequence_number"])])
        assert events[-1]["response"]["usage"]["output_tokens"] == GREEDY["max_output_tokens"]
        assert large.request("GET", f"/responses/{uid}").json() == events[-1]["response"]
        assert large.replay(uid) == events
    (greedy, _) = (large.request("GET", f"/responses/{seen[0]['response']['id']}").json() for seen in streams)
    assert text_of(greedy) == text_of(large.create(**GREEDY))


def test_killed_engine_continues_its_responses(large: LargeModelServer) -> None:
    expected = text_of(large.create(**GREEDY))

    def kill(event: dict[str, Any]) -> None:
        if event["sequence_number"] == KILLED_AT:
            os.kill(large.pid(CORE), signal.SIGKILL)

    events = large.stream(kill, **GREEDY)
    assert "".join(deltas(events)) == expected
    assert events[-1]["response"]["usage"]["output_tokens"] == GREEDY["max_output_tokens"]
