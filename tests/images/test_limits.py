"""Limits on the work of decoding a JPEG, by its structure."""

from __future__ import annotations

import time

import pytest

from responses_app.images import decode
from responses_app.images.decode import InvalidImage, TooMuchWork, check_jpeg
from tests.support.images.encoded_images import drawn
from tests.support.images.expensive_images import progressive, segmented

MAX_SCANS = 100


def with_preview(data: bytes, preview: bytes) -> bytes:
    """Insert a JPEG into an APP1 segment of another, as cameras write previews."""
    return data[:2] + b"\xff\xe1" + (len(preview) + 2).to_bytes(2, "big") + preview + data[2:]


@pytest.mark.slow
def test_a_progressive_jpeg_of_a_camera_is_taken() -> None:
    assert decode.check(progressive(12)) == (7000, 7000)
    assert decode.check(progressive(20)) == (7000, 7000)


@pytest.mark.parametrize("scans", [21, 1000, 100_000])
def test_pixels_times_scans_are_limited_before_anything_is_decoded(scans: int) -> None:
    hostile = progressive(scans)
    began = time.process_time()
    with pytest.raises(InvalidImage, match="1,000,000,000 pixels in all its scans") as caught:
        decode.check(hostile)
    assert caught.value.code == "image_too_large"
    assert time.process_time() - began < 0.5


def test_the_number_of_scans_is_limited() -> None:
    assert decode.check(progressive(MAX_SCANS, 100)) == (100, 100)
    with pytest.raises(InvalidImage, match="more than 100 scans"):
        decode.check(progressive(MAX_SCANS + 1, 100))


def test_scans_of_a_preview_do_not_count() -> None:
    preview = progressive(MAX_SCANS, 100)
    whole = with_preview(progressive(MAX_SCANS, 100), preview)
    assert preview in whole
    assert decode.check(whole) == (100, 100)
    with pytest.raises(InvalidImage, match="scans"):
        decode.check(with_preview(progressive(MAX_SCANS + 1, 100), preview))


def test_bytes_behind_the_end_do_not_count() -> None:
    check_jpeg(progressive(MAX_SCANS, 100) * 2, 100 * 100)


def test_the_number_of_segments_is_limited() -> None:
    assert decode.check(segmented(9000)) == (1, 1)
    with pytest.raises(InvalidImage, match="more than 10,000 segments"):
        decode.check(segmented(20_000))


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xd8", b"\xff\xd8\xff\xe1\0", b"\xff\xd8" + b"\xff" * 1_000_000, b"\xff\xd8\xff\xda"]
)
def test_truncated_jpeg_is_counted_to_its_end(data: bytes) -> None:
    check_jpeg(data, 1)


def test_other_formats_have_no_scans() -> None:
    check_jpeg(drawn("PNG") + b"\xff\xda" * 1000, 1)
    with pytest.raises(TooMuchWork):
        check_jpeg(b"\xff\xd8" + b"\xff\xda\0\2" * 1000, 1)
