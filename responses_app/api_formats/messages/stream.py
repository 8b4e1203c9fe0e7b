"""Events of a streamed message, from the events of a response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from responses_app.api_formats.delta_text import delta_text
from responses_app.api_formats.incomplete import incomplete_details
from responses_app.api_formats.messages.blocks import SERVER_BLOCKS, Block, blocks, citation, excess_searches, tool_use
from responses_app.api_formats.messages.message import message_id, stop_reason, usage
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.reader import TERMINAL

# Type of the delta and key of the text by the type of the event, as these stand in the JSON.
DELTAS: Final = {
    "response.output_text.delta": b'"text_delta","text"',
    "response.refusal.delta": b'"text_delta","text"',
    "response.reasoning_text.delta": b'"thinking_delta","thinking"',
    "response.function_call_arguments.delta": b'"input_json_delta","partial_json"',
}
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":%b:%b}}\n\n'
# Bytes of an event in which the index of the item stands.
HEAD_BYTES: Final = 400
# Types of errors in a stream by the code of the response; others are `api_error`.
ERROR_CODES: Final = {"rate_limit_exceeded": "overloaded_error", "invalid_prompt": "invalid_request_error"}
# Event types that open a text block.
PARTS: Final = frozenset({"output_text", "refusal"})


class MessageEncoder:
    """Encoder of the events of a message. Joined by a client they are the message of the same response.

    Blocks are open one after the other: the events of an item wait until the items before it are done. `prompt_tokens` is the
    length of the prompt, for the first event.
    """

    heartbeat = b'event: ping\ndata: {"type":"ping"}\n\n'
    end = b""

    def __init__(self, *, shows_thinking: bool, prompt_tokens: int = 0) -> None:
        self.last = ""
        self._shows_thinking, self._prompt_tokens = shows_thinking, prompt_tokens
        # Index of the next block, and whether a block is open.
        self._index, self._is_open = 0, False
        # The item whose blocks are sent, how its events name the item, and the events of later items.
        self._item, self._place = 0, b'"output_index":0,'
        self._waiting: list[dict[str, Any]] = []
        # The text of the open block as it stands in the JSON.
        self._text = bytearray()

    def encode(self, frames: Sequence[EventFrame]) -> list[bytes]:
        """Encode the events of a batch."""
        self.last = frames[-1].type
        return [data for frame in frames for data in self._encode(frame)]

    def _encode(self, frame: EventFrame) -> Iterator[bytes]:
        is_in_order = frame.type in DELTAS and frame.data.find(self._place, 0, HEAD_BYTES) >= 0
        if is_in_order and (text := delta_text(frame)) is not None:
            if self._is_open:
                yield self._delta(frame.type, text)
        elif frame.type == "response.created":
            yield self._begin(orjson.loads(frame.data)["response"])
        elif frame.type in TERMINAL:
            yield from self._finish(orjson.loads(frame.data)["response"])
        elif b'"output_index":' in frame.data[:HEAD_BYTES]:
            event = orjson.loads(frame.data)
            if event["output_index"] > self._item:
                self._waiting.append(event)
            else:
                yield from self._in_order(event)

    def _in_order(self, event: Mapping[str, Any]) -> Iterator[bytes]:
        """Encode an event of the open item, and behind the last one the events of the next item that have waited."""
        yield from self._event(event)
        if event["type"] == "response.output_item.done":
            self._item += 1
            self._place = b'"output_index":%d,' % self._item
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if one["output_index"] > self._item:
                    self._waiting.append(one)
                else:
                    yield from self._in_order(one)

    def _event(self, event: Mapping[str, Any]) -> Iterator[bytes]:
        kind = event["type"]
        if kind in DELTAS and self._is_open:
            yield self._delta(kind, orjson.dumps(event["delta"]))
        elif kind == "response.output_item.added":
            yield from self._added(event["item"])
        elif kind == "response.content_part.added" and event["part"]["type"] in PARTS:
            self._text.clear()
            yield self._start({"type": "text", "text": ""})
        elif kind == "response.content_part.done" and event["part"]["type"] in PARTS:
            yield from self._stop()
        elif kind == "response.output_text.annotation.added" and event["annotation"]["type"] == "url_citation":
            cited = citation(event["annotation"], orjson.loads(b'"' + self._text + b'"'))
            yield self._change({"type": "citations_delta", "citation": cited})
        elif kind == "response.output_item.done":
            yield from self._done(event["item"])

    def _delta(self, kind: str, text: bytes) -> bytes:
        """Encode more text of the open block, given in JSON, without a dict. Reasoning that is not shown has no block."""
        self._text += text[1:-1]
        return _DELTA % (self._index, DELTAS[kind], text)

    def _added(self, item: Mapping[str, Any]) -> Iterator[bytes]:
        if item["type"] == "function_call":
            yield self._start(tool_use(item, {}))
        elif item["type"] == "reasoning" and self._shows_thinking:
            yield self._start({"type": "thinking", "thinking": "", "signature": ""})

    def _done(self, item: Mapping[str, Any]) -> Iterator[bytes]:
        if item["type"] in SERVER_BLOCKS:
            yield from self._whole(blocks(item, shows_thinking=self._shows_thinking))
        elif item["type"] == "reasoning" and self._is_open:
            if item.get("encrypted_content"):
                yield self._change({"type": "signature_delta", "signature": item["encrypted_content"]})
            yield from self._stop()
        elif item["type"] == "function_call":
            yield from self._stop()

    def _whole(self, done: Sequence[Block]) -> Iterator[bytes]:
        """Encode blocks that are complete."""
        for block in done:
            arguments = block.get("input")
            yield self._start(block if arguments is None else {**block, "input": {}})
            if arguments is not None:
                yield self._change({"type": "input_json_delta", "partial_json": orjson.dumps(arguments).decode()})
            yield from self._stop()

    def _start(self, block: Mapping[str, Any]) -> bytes:
        self._is_open = True
        return _sse({"type": "content_block_start", "index": self._index, "content_block": block})

    def _change(self, delta: Mapping[str, Any]) -> bytes:
        return _sse({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _stop(self) -> Iterator[bytes]:
        if self._is_open:
            self._is_open = False
            yield _sse({"type": "content_block_stop", "index": self._index})
            self._index += 1

    def _begin(self, response: Mapping[str, Any]) -> bytes:
        start = {
            "id": message_id(response["id"]),
            "type": "message",
            "role": "assistant",
            "model": response["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage({}), "input_tokens": self._prompt_tokens},
        }
        return _sse({"type": "message_start", "message": start})

    def _finish(self, response: Mapping[str, Any]) -> Iterator[bytes]:
        """Encode the last events, or the error of a failed response."""
        yield from self._stop()
        if response["status"] in ("failed", "cancelled"):
            problem = response.get("error") or {"message": "The response was cancelled.", "code": "cancelled"}
            kind = ERROR_CODES.get(problem["code"], "api_error")
            yield _sse({"type": "error", "error": {"type": kind, "message": problem["message"]}})
            return
        yield from self._whole(excess_searches(response))
        reasons = {"stop_reason": stop_reason(response), "stop_sequence": response.get("stop_sequence")}
        delta = {**reasons, **incomplete_details(response)}
        yield _sse({"type": "message_delta", "delta": delta, "usage": usage(response)})
        yield _sse({"type": "message_stop"})


def _sse(event: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))
