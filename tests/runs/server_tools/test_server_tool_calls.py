"""Calls of server tools in both dialects: openings, streamed code, and arguments of searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.base import Dialect
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, CodeCall, Delta, FileSearch, ForItem, ReasoningDelta, WebResult, WebSearch
from responses_app.protocol.writer import Writer
from responses_app.runs.ids import new_id
from responses_app.runs.server_tools.call_parser import ServerCallParser
from responses_app.tools.composite import CompositeOffer
from responses_app.tools.offer import ServerToolOffer
from responses_app.tools.registry import SERVER_TOOLS
from tests.support.dialects.parser_driver import END, byte_vocabulary, chat, harmony, harmony_tokens, joined, sizes, turn

OPENINGS: Mapping[str, Callable[[str], Delta]] = {
    "code_interpreter": lambda _: CodeCall("cntr_1"),
    "web_search": WebSearch,
    "file_search": lambda _: FileSearch(),
}
OFFER = CompositeOffer([ServerToolOffer(tool.types, tool.functions, OPENINGS[tool.name]) for tool in SERVER_TOOLS])
CODE = 'print("é\\n" + f"{6 * 7}")  # 🦑'
QUERY = '{"query": "tides"}'


def parse(dialect: Dialect, tokens: Sequence[int], cuts: Sequence[int] = ()) -> list[Delta]:
    parser, at, deltas = ServerCallParser(dialect.parser_for(turn(tools=OFFER.functions)), OFFER), 0, []
    for size in cuts:
        deltas += parser.feed(Chunk(tokens[at : at + size]))
        at += size
    return joined([*deltas, *parser.feed(Chunk(tokens[at:])), *parser.finish()])


def chat_call(name: str, arguments: str) -> list[int]:
    return byte_vocabulary().encode(f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>')


def harmony_call(recipient: str, text: str, channel: str = "analysis", kind: str = "code") -> list[int]:
    frame = harmony_tokens(f"<|channel|>{channel} to={recipient} {kind}<|message|>")
    return [*frame, *harmony().encoding.encode(text, disallowed_special=()), *harmony_tokens("<|call|>")]


@given(sizes)
def test_code_of_a_chat_model_is_decoded_while_written(cuts: list[int]) -> None:
    deltas = parse(chat(), chat_call("python", json.dumps({"code": CODE})), cuts)
    assert deltas == [CodeCall("cntr_1"), Arguments(CODE), END]


@given(st.sampled_from(["analysis", "commentary"]), sizes)
def test_code_of_gpt_oss_is_raw(channel: str, cuts: list[int]) -> None:
    for text in (CODE, '{"code": "1"}', ""):
        expected = [CodeCall("cntr_1"), *([Arguments(text)] if text else []), END]
        assert parse(harmony(), harmony_call("python", text, channel), cuts) == expected


def test_code_of_gpt_oss_as_a_function_is_decoded() -> None:
    tokens = harmony_call("functions.python", '{"code": "1"}', "commentary", "<|constrain|>json")
    assert parse(harmony(), tokens) == [CodeCall("cntr_1"), Arguments("1"), END]


@pytest.mark.parametrize("channel", ["analysis", "commentary"])
@pytest.mark.parametrize("header", ["<|channel|>{} to=python<|message|>", " to=python<|channel|>{} code<|message|>"])
def test_other_headers_of_code_are_understood(header: str, channel: str) -> None:
    tokens = harmony_tokens(f"{header.format(channel)}print(1)<|call|>")
    assert parse(harmony(), tokens) == [CodeCall("cntr_1"), Arguments("print(1)"), END]


def test_browser_of_gpt_oss_as_a_function_opens_a_web_search() -> None:
    tokens = harmony_call("functions.browser.search", QUERY, "commentary", "<|constrain|>json")
    assert parse(harmony(), tokens) == [WebSearch("web_search", QUERY), END]


@pytest.mark.parametrize("arguments", ["1 +", '{"cod', '{"code": 5}', "[]"])
def test_broken_arguments_of_python_are_code(arguments: str) -> None:
    tokens = harmony_call("functions.python", arguments, "commentary", "<|constrain|>json")
    assert parse(harmony(), tokens) == [CodeCall("cntr_1"), Arguments(arguments), END]


@pytest.mark.parametrize(
    ("recipient", "function"),
    [("browser.search", "web_search"), ("browser.open", "open_page"), ("browser.find", "find_in_page")],
)
@given(sizes)
def test_browser_of_gpt_oss_opens_web_searches(recipient: str, function: str, cuts: list[int]) -> None:
    deltas = parse(harmony(), harmony_call(recipient, QUERY), cuts)
    assert deltas == [WebSearch(function, QUERY), END]


@pytest.mark.parametrize("name", ["web_search", "open_page", "find_in_page", "file_search"])
@given(sizes)
def test_search_of_a_chat_model_opens_with_its_arguments(name: str, cuts: list[int]) -> None:
    expected = FileSearch(arguments=QUERY) if name == "file_search" else WebSearch(name, QUERY)
    assert parse(chat(), chat_call(name, QUERY), cuts) == [expected, END]


@pytest.mark.parametrize(("text", "arguments"), [('{"query": ', '{"query": '), ("", "{}"), ("tides", "tides")])
def test_broken_arguments_of_a_search_reach_the_tool(text: str, arguments: str) -> None:
    assert parse(harmony(), harmony_call("browser.search", text)) == [WebSearch("web_search", arguments), END]


def test_two_calls_open_in_order() -> None:
    tokens = [*chat_call("web_search", QUERY), *chat_call("python", '{"code": "1"}'), *chat_call("file_search", QUERY)]
    expected = [WebSearch("web_search", QUERY), END, CodeCall("cntr_1"), Arguments("1"), END, FileSearch(arguments=QUERY), END]
    assert parse(chat(), tokens) == expected


def test_reasoning_between_calls_of_gpt_oss_stays_reasoning() -> None:
    text = "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant"
    deltas = parse(harmony(), [*harmony_tokens(text), *harmony_call("python", "1")])
    assert deltas == [ReasoningDelta("Let me see."), END, CodeCall("cntr_1"), Arguments("1"), END]


def test_unknown_recipient_opens_nothing() -> None:
    assert not any(isinstance(one, WebSearch | CodeCall) for one in parse(harmony(), harmony_call("browser.close", QUERY)))


def test_pending_search_has_the_call_and_its_events_have_none() -> None:
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    writer = Writer(response, new_id)
    writer.open()
    events = [*writer.write(WebSearch("open_page", '{"id": 3}')), *writer.write(END)]
    (call,) = writer.output.all_items
    assert (call["function"], call["arguments"]) == ("open_page", '{"id": 3}')
    events += writer.write(ForItem(0, WebResult({"type": "open_page", "url": "https://moon.example"})))
    assert '"id": 3' not in json.dumps(events)
    assert "arguments" not in writer.output.items[0]
