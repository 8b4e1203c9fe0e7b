"""Recorded results: keys of calls, results of stored items, and the executor of a rerun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from responses_app.protocol.deltas import CodeResult, Delta, McpResult, SearchStarted, WebResult
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.base import Json
from responses_app.tools.base_executor import ServerToolExecutor
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.recorded.calls import call_key, recorded_result
from responses_app.tools.recorded.executor import NoRecordedResult, RecordedExecutor


class NeverRun(ServerToolExecutor):
    """Code interpreter that must not run."""

    call_type = "code_interpreter_call"
    repeatable = False

    async def prepare(self, items: Sequence[Json]) -> None:
        del items

    def offer(self, items: Sequence[Json]) -> ServerToolOffer:
        del items
        return ServerToolOffer(frozenset(), {}, lambda _: CodeResult())

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        raise AssertionError(call, report)

    def failure(self, call: Json, message: str) -> Delta:
        del call
        return CodeResult(failed=True, model_text=message)

    async def close(self) -> None:
        return None


def code(text: str, logs: str = "") -> dict[str, Any]:
    return {
        "type": "code_interpreter_call",
        "id": f"ci_{logs}",
        "code": text,
        "status": "completed",
        "outputs": [{"type": "logs", "logs": logs}],
        MODEL_OUTPUT: ModelOutput(logs),
    }


def test_equal_calls_get_the_results_in_order_and_then_the_last() -> None:
    results, executor = asyncio.run(_run([code("f()", "1"), code("f()", "2"), code("g()", "3")], ["f()", "g()", "f()", "f()"]))
    assert [result.model_text for result in results] == ["1", "3", "2", "2"]
    executor.offer([])


def test_other_call_fails_and_ends_the_run_with_both_calls_named() -> None:
    results, executor = asyncio.run(_run([code("f()", "1")], ["h()"]))
    assert results[0].failed
    with pytest.raises(
        NoRecordedResult, match=r"this call: code_interpreter\(h\(\)\)\. Its calls: code_interpreter\(f\(\)\)\."
    ):
        executor.offer([])


async def _run(stored: list[Json], codes: list[str]) -> tuple[list[Any], RecordedExecutor]:
    async def load() -> list[Json]:
        return stored

    executor = RecordedExecutor(NeverRun(), load)
    await executor.prepare([])
    executor.offer([])
    return [await executor.run({"type": "code_interpreter_call", "code": text}, lambda _: None) for text in codes], executor


def test_arguments_are_compared_as_json() -> None:
    stored = {"type": "mcp_call", "server_label": "demo", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    assert call_key(stored) == call_key({**stored, "arguments": '{"b":2,"a":1}'})
    assert call_key(stored) != call_key({**stored, "arguments": '{"b":2,"a":2}'})
    assert call_key(stored) != call_key({**stored, "server_label": "other"})
    assert str(call_key(stored)) == 'demo: add({"a":1,"b":2})'


@pytest.mark.parametrize(
    ("action", "function", "arguments"),
    [
        ({"type": "search", "query": "tides", "queries": ["tides"], "sources": []}, "web_search", '{"query": "tides"}'),
        ({"type": "open_page", "url": "https://a.example"}, "open_page", '{"url": "https://a.example"}'),
        (
            {"type": "find_in_page", "url": "https://a.example", "pattern": "x"},
            *("find_in_page", '{"pattern": "x", "url": "https://a.example"}'),
        ),
    ],
)
def test_open_call_of_a_web_search_equals_the_stored_item(action: Json, function: str, arguments: str) -> None:
    stored = {"type": "web_search_call", "action": action, "status": "completed"}
    opened = {**stored, "action": {"type": "search", "query": ""}, "function": function, "arguments": arguments}
    assert call_key(opened) == call_key(stored)


def test_results_of_stored_items() -> None:
    failed = {"type": "mcp_call", "output": None, "error": {"type": "http_error"}, "status": "failed"}
    assert recorded_result(failed) == McpResult(error={"type": "http_error"})
    action = {"type": "search", "query": "x"}
    searched = {"type": "web_search_call", "action": action, "status": "completed", MODEL_OUTPUT: ModelOutput("found")}
    assert recorded_result(searched) == WebResult(action, model_text="found")


def test_search_shows_that_it_runs() -> None:
    seen: list[Delta] = []
    stored = {"type": "web_search_call", "action": {"type": "search", "query": "x"}, "status": "completed"}

    async def load() -> list[Json]:
        return [stored]

    async def run() -> None:
        executor = RecordedExecutor(NeverRun(), load)
        await executor.prepare([])
        await executor.run({**stored, "function": "web_search", "arguments": '{"query": "x"}'}, seen.append)

    asyncio.run(run())
    assert seen == [SearchStarted()]
