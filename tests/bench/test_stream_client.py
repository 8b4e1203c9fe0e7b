"""Counting of events in the reads of a stream, and its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bench.support.api_streams import CHAT_COMPLETIONS, MESSAGES, RESPONSES, ApiStream
from bench.support.stream_client import StreamClient, StreamResult, Target

DELTA = b'event: response.output_text.delta\ndata: {"delta": "a"}\n\n'
END = b'event: response.completed\ndata: {"response": {"usage": {"input_tokens": 3, "output_tokens": 17}}}\n\n'
EVENTS = [b'event: response.created\ndata: {"output_tokens": 0}\n\n', DELTA, DELTA + DELTA, END]
ANSWER = b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in EVENTS) + b"0\r\n\r\n"


class Transport(asyncio.Transport):
    """Transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_closed = b"", False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True


async def receive(size: int, answer: bytes = ANSWER, api: ApiStream = RESPONSES) -> StreamResult:
    """Give a client the answer in reads of `size` bytes."""
    done: asyncio.Future[StreamResult] = asyncio.get_running_loop().create_future()
    client, transport = StreamClient(b"request", done, api), Transport()
    client.connection_made(transport)
    for at in range(0, len(answer), size):
        client.data_received(answer[at : at + size])
    client.connection_lost(None)
    assert transport.written == b"request"
    return await done


@pytest.mark.parametrize("size", [7, 50, 10_000])
def test_events_are_counted_once_however_they_are_cut(size: int) -> None:
    result = asyncio.run(receive(size))
    assert (result.events, result.deltas, result.tokens, result.status) == (5, 3, 17, "completed")


CHAT = b"".join(
    b"data: %b\n\n" % data
    for data in (
        b'{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}',
        b'{"choices":[{"index":0,"delta":{"reasoning_content":"a"},"finish_reason":null}],"usage":null}',
        b'{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}',
        b'{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":null}',
        b'{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":17}}',
        b"[DONE]",
    )
)
MESSAGE = (
    b'event: message_start\ndata: {"usage":{"output_tokens":0}}\n\n'
    b'event: content_block_delta\ndata: {"delta":{"type":"thinking_delta","thinking":"a"}}\n\n'
    b'event: content_block_delta\ndata: {"delta":{"type":"text_delta","text":"a"}}\n\n'
    b'event: message_delta\ndata: {"usage":{"output_tokens":17}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@pytest.mark.parametrize("size", [7, 10_000])
@pytest.mark.parametrize(("api", "events", "status"), [(CHAT_COMPLETIONS, CHAT, "length"), (MESSAGES, MESSAGE, "message_stop")])
def test_events_of_other_api_formats_are_counted(size: int, api: ApiStream, events: bytes, status: str) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(events), events)
    result = asyncio.run(receive(size, answer, api))
    assert (result.events, result.deltas, result.tokens, result.status) == (5, 2, 17, status)
    assert result.visible is not None


@pytest.mark.parametrize("size", [7, 10_000])
def test_first_text_is_timed_apart_from_the_reasoning(size: int) -> None:
    thought = DELTA.replace(b"output_text", b"reasoning_text")
    head, _, events = ANSWER.partition(EVENTS[0])
    result = asyncio.run(receive(size, head + EVENTS[0] + thought * 3 + events))
    assert result.visible is not None
    assert result.times[0] <= result.visible <= result.times[-1]
    assert (result.visible == result.times[0]) == (size > len(ANSWER))
    assert asyncio.run(receive(size, head + thought + END + b"0\r\n\r\n")).visible is None


def test_stream_without_terminal_event_fails() -> None:
    with pytest.raises(ConnectionError, match="without a terminal event"):
        asyncio.run(receive(50, b"HTTP/1.1 503 Service Unavailable\r\n\r\n{}"))


def test_request_has_the_length_of_its_body() -> None:
    head, _, body = Target("h", 1, "m", "k").request(input="é").partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"Authorization: Bearer k\r\n" in head


def test_request_has_the_fields_of_its_api_format() -> None:
    fields = {"input": "Hello", "max_output_tokens": 5, "temperature": 0}
    for api, more in ((CHAT_COMPLETIONS, {"stream_options": {"include_usage": True}}), (MESSAGES, {})):
        head, _, body = Target("h", 1, "m", api=api).request(**fields).partition(b"\r\n\r\n")
        assert head.startswith(f"POST {api.path} ".encode())
        messages = [{"role": "user", "content": "Hello"}]
        sent = {"model": "m", "stream": True, "temperature": 0, "messages": messages, "max_tokens": 5}
        assert json.loads(body) == {**sent, **more}
