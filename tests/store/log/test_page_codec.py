"""A page gives back what was packed, byte for byte, whatever that is."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from responses_app.store.log import page_codec
from responses_app.store.log.page_codec import WINDOW, UnknownVersion, pack, unpack
from responses_app.store.log.records import EventFrame
from tests.support.store.stored_logs import told

NUMBERS = st.integers(0, 2**31 - 1)
TIMES = st.integers(-(2**31), 2**31 - 1)
TYPES = st.one_of(
    st.sampled_from(["response.output_text.delta", "response.reasoning_text.delta", "response.completed", "error"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DELTAS = st.builds(
    lambda number, kind, text, rest, ms: EventFrame(
        number, kind, orjson.dumps({"type": kind, "sequence_number": number, "item_id": "msg_1", "delta": text, **rest}), ms
    ),
    NUMBERS,
    TYPES,
    TEXTS,
    st.sampled_from([{}, {"logprobs": []}, {"logprobs": [{"token": "x", "bytes": [120]}]}, {"delta": {"delta": ""}}]),
    TIMES,
)
ANYTHING = st.builds(EventFrame, NUMBERS, TYPES, st.binary(max_size=60), TIMES)


@settings(deadline=None)
@given(st.lists(DELTAS | ANYTHING, max_size=30))
@example([])
@example([EventFrame(0, "x", b"")])
@example([EventFrame(5, "x", b'{"type":"x","sequence_number":57}')])
@example([EventFrame(1, "a.delta", b'{"type":"a.delta","sequence_number":1,"delta":"","logprobs":[]}')])
@example([EventFrame(1, "a.delta", b'{"type":"a.delta","sequence_number":1,"delta":"\\u0000\\"delta\\":\\""}')])
@example([EventFrame(1, "a.delta", b'{"type":"a.delta","sequence_number":1,"delta":"","delta":"","logprobs":[]}')])
def test_any_frames_come_back_as_they_were(frames: list[EventFrame]) -> None:
    assert unpack(pack(frames)) == frames


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000])
def test_real_logs_come_back_as_they_were(count: int) -> None:
    frames = told(count)
    assert unpack(pack(frames)) == frames


def test_what_is_larger_than_the_window_comes_back_too() -> None:
    frames = [EventFrame(n, "x", orjson.dumps({"type": "x", "sequence_number": n, "text": "long " * WINDOW})) for n in range(3)]
    assert unpack(pack(frames)) == frames
    assert unpack(pack(frames[:1])) == frames[:1]


def test_a_delta_takes_a_few_bytes() -> None:
    frames = told(1000)
    assert len(pack(frames)) / len(frames) < 8


def test_a_page_of_a_later_version_is_refused() -> None:
    with pytest.raises(UnknownVersion):
        unpack(b"\xff" + pack([])[1:])


def test_a_page_that_was_written_long_ago_can_still_be_read() -> None:
    # Bytes of version 1 as they were first written. Should this fail, the layout or the phrases have changed without a new version.
    assert unpack(bytes.fromhex(OLD)) == told(3)
    assert page_codec.pack(told(3))[0] == page_codec.DEFLATE


OLD = (
    "01fbc32480deea6234646010c1d6f4024948e14e402069693c7918ab7684c7180df330fc4622202d2804d0c3421267dca03a"
    "1da3e002494be2cc72205921cc662b48989b81918999858585958d9d839b81090eb81994e0403032723ee31a467666d61ec6"
    "dd8caf19ef30cfe2c1d5e435c49dbc91db5328053e52730f544fd2cc609ca50b25d18d91d1c9ccdcf44979d42941fcf24b32"
    "8015844266b1424e7e71097d9c0e751d9adde83968f00423a64309842add132895aa4b523d1a4b642647761e3c8b0fbbb088"
    "c5d9523725baa96e447453dd9ca4b6ba31465bddd0a816ad7b8e367a515b0b00"
)
