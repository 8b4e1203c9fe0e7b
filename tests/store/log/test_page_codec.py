"""A page gives back the frames that were packed, byte for byte."""

from __future__ import annotations

import orjson
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.page_codec import UnreadablePage, pack, unpack, unpack_headers
from tests.support.store.stored_logs import log_frames

NUMBERS = st.integers(0, 2**31 - 1)
TIMES = st.integers(-(2**31), 2**31 - 1)
TYPES = st.one_of(
    st.sampled_from(["response.output_text.delta", "response.reasoning_text.delta", "response.completed", "error"]),
    st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=20),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DELTAS = st.builds(
    lambda number, kind, text, fields, ms: EventFrame(
        number, kind, orjson.dumps({"type": kind, "sequence_number": number, "item_id": "msg_1", "delta": text, **fields}), ms
    ),
    NUMBERS,
    TYPES,
    TEXTS,
    st.sampled_from([{}, {"logprobs": []}, {"logprobs": [{"token": "x", "bytes": [120]}]}, {"delta": {"delta": ""}}]),
    TIMES,
)
ANY_JSON = st.builds(
    EventFrame,
    NUMBERS,
    TYPES,
    st.recursive(
        st.none() | st.booleans() | st.floats() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
    ).map(orjson.dumps),
    TIMES,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(DELTAS | ANY_JSON, max_size=30))
@example([])
@example([EventFrame(0, "x", b"{}")])
@example([EventFrame(0, "x", b"")])
@example([EventFrame(5, "x", b'{"type":"x","sequence_number":5}')])
@example([EventFrame(5, "x", b'{"type":"x","sequence_number":57}')])
@example([EventFrame(1, "a.delta", b'{"type":"a.delta","sequence_number":1,"delta":"\\u0000 \\"delta\\":\\""}')])
def test_any_frames_come_back_as_they_were(frames: list[EventFrame]) -> None:
    assert unpack(pack(frames)) == frames


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000])
def test_real_logs_come_back_as_they_were(count: int) -> None:
    frames = log_frames(count)
    assert unpack(pack(frames)) == frames


def test_long_events_come_back_as_they_were() -> None:
    frames = [EventFrame(n, "x", orjson.dumps({"type": "x", "sequence_number": n, "text": "long " * 40_000})) for n in range(3)]
    assert unpack(pack(frames)) == frames


def test_only_the_frames_with_the_given_numbers_are_decoded() -> None:
    frames = log_frames(100)
    assert unpack(pack(frames), {3, 50}) == [frames[3], frames[50]]
    assert list(unpack_headers(pack(frames))) == [(frame.number, frame.type, frame.ms) for frame in frames]


def test_a_delta_takes_a_few_bytes() -> None:
    frames = log_frames(1000)
    assert len(pack(frames)) / len(frames) < 8


@pytest.mark.parametrize(("kind", "data"), [("x", b'{"a":\n1}'), ("x", b",}"), ("x y", b"{}"), ("", b"{}")])
def test_data_that_is_not_json_on_one_line_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(ValueError, match="is not JSON on one line"):
        pack([EventFrame(0, kind, data)])


def test_a_page_of_another_dictionary_is_refused() -> None:
    samples: list[bytes | bytearray | memoryview[int]] = [
        b"%d 17 response.output_text.delta %d" % (n, n * 7919) * 20 for n in range(1000)
    ]
    other = zstandard.train_dictionary(4096, samples, dict_id=2)
    with pytest.raises(UnreadablePage):
        unpack(zstandard.ZstdCompressor(dict_data=other).compress(b"0 0 x {}\n"))


def test_a_damaged_page_is_refused() -> None:
    with pytest.raises(UnreadablePage):
        unpack(pack(log_frames(3))[:-5])


def test_a_page_that_was_written_long_ago_can_still_be_read() -> None:
    # Bytes as they were first written. Should this fail, the lines or the dictionary have changed without a new id.
    assert unpack(bytes.fromhex(OLD)) == log_frames(3)


OLD = (
    "28b52ffd6101e507350500c0313137304e6f74686c6f7374315d3532373331327d7d7d0a34fc56dc0507fc37446a7c2790b4"
    "2bc8ab4069de02fd8f28c60b6410edc811183dc4109d4a90961374a2170e76ddf5d5747a444bbe560953caebf142d97eedbb"
    "f838b74103002eed9d760a152546af7b4ea40cf721790b2bd0b5d18d01a24ffb4ae7870d880510d11880a433fa0f1e9084e4"
    "c07add7d1f1ef1c20a0450b48134b5ea70bb5318080bef161c5c04"
)
