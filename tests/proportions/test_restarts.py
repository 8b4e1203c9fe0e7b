"""Crashes: a response goes on with the same bytes when its web process or its engine is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.large_model_server import CORE, WEB, LargeModelServer, checked, deltas, text_of
from tests.support.waiting import wait_until

GREEDY: dict[str, Any] = {"input": "Ada", "max_output_tokens": 300, "ignore_eos": True}
KILLED_AT = 60


def kill_at(large: LargeModelServer, name: str, seen: list[dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
    """Return a reader of events that collects these in `seen` and kills a process after `KILLED_AT` events."""

    def collect(event: dict[str, Any]) -> None:
        seen.append(event)
        if len(seen) == KILLED_AT:
            os.kill(large.pid(name), signal.SIGKILL)

    return collect


@pytest.mark.parametrize("temperature", [0, 1])
def test_killed_web_process_continues_its_response(large: LargeModelServer, temperature: int) -> None:
    body = {**GREEDY, "temperature": temperature, "include": ["message.output_text.logprobs"]}
    seen: list[dict[str, Any]] = []
    old = large.pid(WEB)
    with pytest.raises(httpx2.HTTPError):
        large.stream(kill_at(large, WEB, seen), **body)
    large.wait_for_new(WEB, old)
    uid = seen[0]["response"]["id"]
    wait_until(lambda: large.request("GET", f"/responses/{uid}").status_code == 200, poll_s=0.1)
    events = checked([*seen, *large.replay(uid, seen[-1]["sequence_number"])])
    response = events[-1]["response"]
    assert response["usage"]["output_tokens"] == 300
    assert large.request("GET", f"/responses/{uid}").json() == response
    assert large.replay(uid) == events
    if temperature == 0:
        assert text_of(response) == text_of(large.create(**GREEDY))


def test_killed_engine_continues_its_responses(large: LargeModelServer) -> None:
    seen: list[dict[str, Any]] = []
    expected = text_of(large.create(**GREEDY))
    events = large.stream(kill_at(large, CORE, seen), **GREEDY)
    assert "".join(deltas(events)) == expected
    assert events[-1]["response"]["usage"]["output_tokens"] == 300
