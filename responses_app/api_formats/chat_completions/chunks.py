"""Chunks of a streamed chat completion, from the events of a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from responses_app.api_formats.chat_completions.completion import (
    TOOL_CALLS,
    completion_id,
    finish_reason,
    is_url,
    message,
    tool_call,
    url_citation,
    usage,
)
from responses_app.api_formats.delta_text import delta_text
from responses_app.api_formats.incomplete import incomplete_details
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.reader import TERMINAL
from responses_app.wire.sse import DONE, HEARTBEAT, pad

# Delta events whose text is a field of `delta`.
TEXTS: Final = {
    "response.output_text.delta": b'{"content":',
    "response.reasoning_text.delta": b'{"reasoning_content":',
    "response.refusal.delta": b'{"refusal":',
}
ARGUMENTS: Final = {
    "response.function_call_arguments.delta": ("function", "arguments"),
    "response.custom_tool_call_input.delta": ("custom", "input"),
}
# Types of errors by the code of the response, as without a stream.
ERROR_TYPES: Final = {"invalid_prompt": "invalid_request_error", "rate_limit_exceeded": "rate_limit_error"}


class ChunkEncoder:
    """Encoder of chunks. The chunks of a stream, joined by a client, are the completion of the same response.

    With `include_usage`, the last chunk has the usage, and all others a null.
    """

    heartbeat = HEARTBEAT
    end = DONE

    def __init__(self, *, include_usage: bool = False, obfuscate: bool = False) -> None:
        self.last = ""
        self._include_usage, self._obfuscate = include_usage, obfuscate
        self._head, self._tail = b"", b""
        # Number of the call of each output item, and characters of the content before the open part.
        self._calls: dict[int, int] = {}
        self._offset = 0

    def encode(self, frames: Sequence[EventFrame]) -> list[bytes]:
        """Encode the events of a batch."""
        self.last = frames[-1].type
        return [data for frame in frames if (data := self._encode(frame))]

    def _encode(self, frame: EventFrame) -> bytes:
        key = TEXTS.get(frame.type)
        if key is not None:
            text = delta_text(frame)
            if text is None:
                return self._text_with_logprobs(frame)
            data = b"%b%b%b}%b" % (self._head, key, text, self._tail)
            return _sse(pad(data, frame.number) if self._obfuscate else data)
        if frame.type in ARGUMENTS:
            event, (kind, field) = orjson.loads(frame.data), ARGUMENTS[frame.type]
            call = {"index": self._calls[event["output_index"]], kind: {field: event["delta"]}}
            return self._chunk(frame, orjson.dumps({"tool_calls": [call]}))
        if frame.type == "response.output_item.added":
            return self._item(frame, orjson.loads(frame.data))
        if frame.type == "response.output_text.annotation.added":
            annotation = orjson.loads(frame.data)["annotation"]
            if not is_url(annotation):
                return b""
            return self._chunk(frame, orjson.dumps({"annotations": [url_citation(annotation, self._offset)]}))
        if frame.type == "response.output_text.done":
            self._offset += len(orjson.loads(frame.data)["text"])
            return b""
        if frame.type == "response.created":
            return self._begin(frame)
        return self._finish(frame) if frame.type in TERMINAL else b""

    def _begin(self, frame: EventFrame) -> bytes:
        """Encode the first chunk, and keep the fields that all chunks share."""
        response = orjson.loads(frame.data)["response"]
        shared = {
            "id": completion_id(response["id"]),
            "object": "chat.completion.chunk",
            "created": response["created_at"],
            "model": response["model"],
            "system_fingerprint": None,
        }
        self._head = orjson.dumps(shared)[:-1] + b',"choices":[{"index":0,"delta":'
        self._tail = b',"logprobs":null,"finish_reason":null}]' + (b',"usage":null}' if self._include_usage else b"}")
        return self._chunk(frame, b'{"role":"assistant"}')

    def _text_with_logprobs(self, frame: EventFrame) -> bytes:
        event = orjson.loads(frame.data)
        tail = self._tail.replace(b"null", orjson.dumps({"content": event.get("logprobs") or [], "refusal": None}), 1)
        return self._chunk(frame, orjson.dumps({"content": event["delta"]}), tail)

    def _item(self, frame: EventFrame, event: dict[str, Any]) -> bytes:
        item = event["item"]
        if item["type"] not in TOOL_CALLS:
            return b""
        number = self._calls[event["output_index"]] = len(self._calls)
        return self._chunk(frame, orjson.dumps({"tool_calls": [{"index": number, **tool_call(item)}]}))

    def _finish(self, frame: EventFrame) -> bytes:
        """Encode the last chunks, or the error of a failed response."""
        response = orjson.loads(frame.data)["response"]
        if response["status"] in ("failed", "cancelled"):
            return _sse(orjson.dumps({"error": failure(response)}))
        fields = {"finish_reason": finish_reason(response), **incomplete_details(response)}
        # Without any delta of a text a client would have joined a null.
        delta = b'{"content":""}' if message(response["output"])["content"] == "" else b"{}"
        chunk = self._chunk(frame, delta, self._tail.replace(b'"finish_reason":null', orjson.dumps(fields)[1:-1]))
        if not self._include_usage:
            return chunk
        shared = self._head[: self._head.index(b',"choices":')]
        return chunk + _sse(shared + b',"choices":[],"usage":' + orjson.dumps(usage(response)) + b"}")

    def _chunk(self, frame: EventFrame, delta: bytes, tail: bytes | None = None) -> bytes:
        data = self._head + delta + (self._tail if tail is None else tail)
        return _sse(pad(data, frame.number) if self._obfuscate and frame.type.endswith(".delta") else data)


def failure(response: dict[str, Any]) -> dict[str, Any]:
    """Return the error of a response that failed or was cancelled, in the form of an error body."""
    error = response.get("error") or {"code": "cancelled", "message": "The response was cancelled."}
    kind = ERROR_TYPES.get(error["code"], "server_error")
    return {"message": error["message"], "type": kind, "param": None, "code": error["code"]}


def _sse(data: bytes) -> bytes:
    return b"data: %b\n\n" % data
