"""Offers of server tools: functions, tool choices, names of clients, and the composite of several tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from responses_app.protocol.deltas import CodeCall, CodeResult, Delta, FileResult, FileSearch, WebSearch
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import ToolExecutor
from responses_app.tools.composite import CompositeExecutor, CompositeOffer
from responses_app.tools.functions.as_functions import taken_name
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.registry import FUNCTIONS

PYTHON = ServerToolOffer({"code_interpreter"}, {"python": FUNCTIONS["python"]}, lambda _: CodeCall("cntr_1"), "Memory: 1 GB.")
WEB = ServerToolOffer(
    {"web_search", "web_search_preview"}, {name: FUNCTIONS[name] for name in ("web_search", "open_page")}, lambda _: WebSearch()
)
BOTH = CompositeOffer([PYTHON, WEB])
SEARCH, OPEN = {"type": "function", "name": "web_search"}, {"type": "function", "name": "open_page"}
OWN = {"type": "function", "name": "mine"}


def test_functions_of_all_tools_are_offered() -> None:
    assert [one["name"] for one in BOTH.functions] == ["python", "web_search", "open_page"]
    assert BOTH.functions[0]["description"].endswith(" Memory: 1 GB.")
    assert taken_name({"mine", "open_page"}, BOTH.functions) == "open_page"
    assert taken_name({"mine"}, BOTH.functions) is None


def test_openings_are_those_of_the_tool_with_the_function() -> None:
    assert [BOTH.opening(name) for name in ("python", "open_page", "mine")] == [CodeCall("cntr_1"), WebSearch(), None]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", "required"),
        ({"type": "code_interpreter"}, {"type": "function", "name": "python"}),
        ({"type": "web_search_preview"}, SEARCH),
        (OWN, OWN),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [OWN, {"type": "web_search"}]},
            {"type": "allowed_tools", "mode": "auto", "tools": [OWN, SEARCH, OPEN]},
        ),
    ],
)
def test_tool_choice_names_functions(choice: Any, expected: Any) -> None:
    assert BOTH.tool_choice(choice) == expected


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "{} {}", '{"a": NaN}'])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="The arguments are not"):
        parse_arguments(text)


def test_arguments_are_parsed() -> None:
    assert parse_arguments('{"queries": ["a"]}') == {"queries": ["a"]}


class StubTools:
    """Test-only executor of items of a single type."""

    def __init__(self, kind: str, opening: Delta, result: Delta) -> None:
        self.kind, self.first, self.result, self.closed = kind, opening, result, 0
        self.error: Exception | None = None

    async def prepare(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing."""

    def offer(self, items: Sequence[Mapping[str, Any]]) -> ServerToolOffer:
        return PYTHON

    def openings(self, items: Sequence[Mapping[str, Any]]) -> Sequence[Delta]:
        return [self.first]

    def can_run(self, item: Mapping[str, Any]) -> bool:
        return bool(item["type"] == self.kind)

    def counts(self, item: Mapping[str, Any]) -> bool:
        return True

    def is_repeatable(self, call: Mapping[str, Any]) -> bool:
        return self.kind == "file_search_call"

    async def run(self, call: Mapping[str, Any], report: Callable[[Delta], None]) -> Delta:
        return self.result

    def failure(self, call: Mapping[str, Any], message: str) -> Delta:
        return self.result

    async def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


def composite() -> tuple[CompositeExecutor, list[StubTools]]:
    stubs = [
        StubTools("code_interpreter_call", CodeCall("cntr_1"), CodeResult()),
        StubTools("file_search_call", FileSearch(), FileResult(())),
    ]
    executors: list[ToolExecutor] = [*stubs]
    return CompositeExecutor(executors), stubs


def test_composite_gives_each_call_to_its_tool() -> None:
    tools, _ = composite()
    code, search, other = ({"type": kind} for kind in ("code_interpreter_call", "file_search_call", "message"))
    assert tools.openings([]) == [CodeCall("cntr_1"), FileSearch()]
    assert [tools.can_run(one) for one in (code, search, other)] == [True, True, False]
    assert [tools.counts(one) for one in (code, search, other)] == [True, True, False]
    assert [tools.is_repeatable(one) for one in (code, search)] == [False, True]
    assert asyncio.run(tools.run(search, lambda delta: None)) == FileResult(())
    assert tools.failure(code, "no") == CodeResult()
    with pytest.raises(LookupError):
        tools.failure(other, "no")


def test_composite_closes_every_tool() -> None:
    tools, stubs = composite()
    stubs[0].error = RuntimeError("broken")
    with pytest.raises(RuntimeError):
        asyncio.run(tools.close())
    assert [stub.closed for stub in stubs] == [1, 1]
