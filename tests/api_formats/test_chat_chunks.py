"""Chunks of Chat Completions: joined by a client they are the completion, for every log, and the openai package accepts both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from hypothesis import given
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from responses_app.api_formats.chat_completions.chunks import ChunkEncoder
from responses_app.api_formats.chat_completions.completion import completion
from responses_app.protocol.deltas import Delta
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from tests.support.protocol.response_strategies import speeches, write_response


def chunks_of(events: Iterable[Event], encoder: ChunkEncoder) -> list[dict[str, Any]]:
    """Encode events one by one and return the JSON of the chunks."""
    made = []
    for event in events:
        for data in encoder.encode([EventFrame(event["sequence_number"], event["type"], orjson.dumps(event))]):
            made += [orjson.loads(line.removeprefix(b"data: ")) for line in data.split(b"\n\n") if line]
    return made


def joined(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Join chunks as clients do."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": []}
    tokens, finish = [], None
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta, finish = choice["delta"], choice["finish_reason"] or finish
            for name in ("content", "reasoning_content", "refusal"):
                if name in delta:
                    message[name] = (message.get(name) or "") + delta[name]
            message["annotations"] += delta.get("annotations", [])
            tokens += (choice["logprobs"] or {}).get("content", [])
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append({key: value for key, value in call.items() if key != "index"})
                else:
                    _extend(message["tool_calls"][call["index"]], call)
    return {"message": message, "logprobs": tokens, "finish_reason": finish, "usage": chunks_usage(chunks)}


def chunks_usage(chunks: Iterable[dict[str, Any]]) -> Any:
    """Return the usage of the last chunk that has one."""
    return next((chunk["usage"] for chunk in reversed(list(chunks)) if chunk.get("usage")), None)


def _extend(call: dict[str, Any], more: dict[str, Any]) -> None:
    kind, key = ("function", "arguments") if "function" in more else ("custom", "input")
    call[kind][key] += more[kind][key]


@given(speech=speeches())
def test_joined_chunks_are_the_completion(speech: tuple[list[Delta], str]) -> None:
    events, _ = write_response(*speech)
    response = events[-1]["response"]
    chunks = chunks_of(events, ChunkEncoder(include_usage=True))
    for chunk in chunks:
        # The types of the package know custom tools in completions, and not in chunks.
        if "error" not in chunk and '"custom"' not in orjson.dumps(chunk).decode():
            ChatCompletionChunk.model_validate_json(orjson.dumps(chunk), strict=True)
    if response["status"] in ("failed", "cancelled"):
        assert chunks[-1]["error"]["message"]
        return
    body = completion(response)
    ChatCompletion.model_validate_json(orjson.dumps(body), strict=True)
    (choice,) = body["choices"]
    of_stream = joined(chunks)
    message = {"tool_calls": [], **choice["message"]}
    assert of_stream["message"] == message
    assert of_stream["logprobs"] == (choice["logprobs"] or {}).get("content", [])
    assert (of_stream["finish_reason"], of_stream["usage"]) == (choice["finish_reason"], body["usage"])
    assert {chunk["id"] for chunk in chunks} == {body["id"]}


@given(speech=speeches())
def test_padding_hides_lengths_and_changes_nothing_else(speech: tuple[list[Delta], str]) -> None:
    events, _ = write_response(*speech)
    padded = chunks_of(events, ChunkEncoder(obfuscate=True))
    for chunk in padded:
        chunk.pop("obfuscation", None)
    assert padded == chunks_of(events, ChunkEncoder())


@pytest.mark.parametrize("include_usage", [True, False])
def test_usage_comes_once_and_only_if_asked_for(include_usage: bool) -> None:
    events, _ = write_response([])
    chunks = chunks_of(events, ChunkEncoder(include_usage=include_usage))
    assert [bool(chunk.get("usage")) for chunk in chunks] == [False] * (len(chunks) - include_usage) + [True] * include_usage
    assert all(("usage" in chunk) == include_usage for chunk in chunks)
