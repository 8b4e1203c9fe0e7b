"""Frames and messages between a web process and an engine worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineError,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    Logprob,
    RequestRejected,
    Sampling,
)
from responses_app.engines.socket import codec
from responses_app.engines.socket.frames import HEADER, MAX_FRAME_BYTES, FrameSplitter, InvalidFrame, encode

TOKENS = st.integers(0, 2**32 - 1)
NUMBERS = st.floats(-1e3, 1e3)
SAMPLINGS = st.builds(
    Sampling,
    max_tokens=st.integers(1, 10**6),
    temperature=NUMBERS,
    top_k=st.integers(0, 2**31),
    min_p=NUMBERS,
    repetition_penalty=NUMBERS,
    seed=st.none() | st.integers(0, 2**63 - 1),
    logprobs=st.none() | st.integers(0, 20),
    ignore_eos=st.booleans(),
    stop_token_ids=st.lists(TOKENS, max_size=3),
    bias=st.dictionaries(TOKENS, NUMBERS, max_size=3),
)
REQUESTS = st.builds(
    GenerateRequest,
    id=st.text(min_size=1, max_size=9),
    prompt=st.lists(TOKENS, max_size=20),
    sampling=SAMPLINGS,
    constraint=st.none() | st.just(Constraint("json", {"type": "object"})) | st.builds(Constraint, st.just("regex"), st.text()),
    images=st.lists(st.binary(max_size=9), max_size=3),
    priority=st.integers(-9, 9),
    cache_salt=st.none() | st.text(max_size=9),
    length=st.none() | st.integers(0, 99),
    owner=st.text(max_size=9),
    may_join=st.booleans(),
)
LOGPROBS = st.builds(Logprob, TOKENS, NUMBERS, st.lists(st.tuples(TOKENS, NUMBERS), max_size=3))
CHUNKS = st.builds(
    Chunk,
    st.lists(TOKENS, max_size=9),
    st.lists(LOGPROBS, max_size=2),
    st.sampled_from([None, "stop", "length", "abort"]),
    st.none() | st.integers(0, 99),
    st.none() | st.integers(0, 99),
)
ERRORS = [RequestRejected("bad"), EngineUnavailable("dead"), EngineUnreachable("away"), EngineOverloaded("full", 2.5)]


@given(
    frames=st.lists(st.tuples(st.lists(st.integers() | st.text(), max_size=4), st.binary(max_size=30)), max_size=5),
    data=st.data(),
)
def test_frames_are_the_same_however_the_bytes_are_split(
    frames: list[tuple[list[int | str], bytes]], data: st.DataObject
) -> None:
    frames = [
        ([part for part in messages if not isinstance(part, int) or abs(part) < 2**63], body) for messages, body in frames
    ]
    content = b"".join(encode(messages, body) for messages, body in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    splitter = FrameSplitter()
    parts = (content[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True))
    assert [frame for part in parts for frame in splitter.feed(part)] == frames


@pytest.mark.parametrize(
    "content",
    [HEADER.pack(MAX_FRAME_BYTES, 1), HEADER.pack(3, 0) + b"[1,", HEADER.pack(2, 0) + b"{}"],
    ids=["long", "broken", "object"],
)
def test_bytes_that_are_no_frame_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidFrame):
        list(FrameSplitter().feed(content))


def through_the_socket(message: object, body: bytes = b"") -> tuple[list[object], bytes]:
    (frame,) = FrameSplitter().feed(encode([message], body))
    return frame


@given(REQUESTS)
def test_request_survives_the_socket(request: GenerateRequest) -> None:
    ((values,), body) = through_the_socket(*codec.encode_request(request))
    assert isinstance(values, dict)
    assert codec.decode_request(values, body) == request


@given(CHUNKS)
def test_chunk_survives_the_socket(chunk: Chunk) -> None:
    ((message,), _) = through_the_socket(codec.encode_chunk(7, chunk))
    assert isinstance(message, list)
    decoded = codec.decode_chunk(message)
    assert ([*decoded.tokens], [*decoded.logprobs]) == ([*chunk.tokens], [*chunk.logprobs])
    assert (decoded.finish, decoded.cached, decoded.prompt) == (chunk.finish, chunk.cached, chunk.prompt)


@pytest.mark.parametrize("error", ERRORS)
def test_error_survives_the_socket(error: EngineError) -> None:
    ((message,), _) = through_the_socket(codec.encode_error(7, error))
    assert isinstance(message, list)
    decoded = codec.decode_error(message)
    assert (type(decoded), decoded.args) == (type(error), error.args)
    assert getattr(decoded, "retry_after_s", None) == getattr(error, "retry_after_s", None)


@given(CHUNKS, CHUNKS)
def test_joined_chunks_have_the_tokens_of_both(first: Chunk, second: Chunk) -> None:
    first.finish = None
    joined = codec.join_chunks(first, second)
    assert [*joined.tokens] == [*first.tokens, *second.tokens]
    assert [*joined.logprobs] == [*first.logprobs, *second.logprobs]
    assert joined.finish == second.finish


def test_token_id_out_of_range_is_rejected() -> None:
    with pytest.raises(RequestRejected, match="token id"):
        codec.encode_request(GenerateRequest("r", [-1], Sampling(1)))
