"""Data URLs and image decoding."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from responses_app.images import decode
from responses_app.images.decode import InvalidImage
from tests.support.images.encoded_images import drawn


@given(st.binary(), st.sampled_from(["", "\n", " ", "\r\n"]), st.sampled_from(["image/png", "IMAGE/PNG", "image/jpg"]))
def test_a_data_url_holds_its_bytes(data: bytes, space: str, kind: str) -> None:
    text = b64encode(data).decode()
    broken = space.join(text[at : at + 76] for at in range(0, len(text), 76))
    assert decode.decode_data_url(f"data:{kind};base64,{broken}") == data


def complaint(url: str) -> InvalidImage | None:
    """Return the error for a data URL; any other exception is a bug."""
    try:
        decode.decode_data_url(url)
    except InvalidImage as error:
        return error
    return None


@given(st.text(max_size=40))
@pytest.mark.parametrize("scheme", ["data:", "data:image/png;base64,"])
def test_any_other_text_is_refused_in_words(scheme: str, text: str) -> None:
    error = complaint(scheme + text)
    assert error is None or str(error)[0].isupper()
    assert error is None or error.code in ("invalid_image_url", "unsupported_image_media_type")


@settings(deadline=None)
@given(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF"]), st.data())
def test_a_picture_that_was_cut_off_is_none(kind: str, data: st.DataObject) -> None:
    whole = drawn(kind)
    assert decode.check(whole) == (40, 30)
    cut = data.draw(st.integers(0, len(whole) // 2))
    with pytest.raises(InvalidImage):
        decode.check(whole[:cut])


@given(data=st.binary(max_size=200))
@pytest.mark.parametrize("head", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"RIFF\x00\x00\x00\x00WEBP"])
def test_any_bytes_are_judged_without_another_error(data: bytes, head: bytes) -> None:
    with pytest.raises(InvalidImage):
        decode.check(head + data)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "I;16", "LA"])
def test_every_way_to_keep_colours_is_taken(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    decode.check(drawn(kind, mode))


@pytest.mark.parametrize(
    ("kind", "code"), [("BMP", "invalid_image_format"), ("TIFF", "invalid_image_format"), ("PDF", "invalid_image_format")]
)
def test_other_formats_are_not_decoded(kind: str, code: str) -> None:
    with pytest.raises(InvalidImage) as caught:
        decode.check(drawn(kind))
    assert caught.value.code == code


@pytest.mark.parametrize("size", [(8000, 8000), (10000, 9500), (20000, 10000)])
def test_a_small_file_that_is_a_large_picture_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    bomb = BytesIO()
    Image.new("1", size).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(InvalidImage) as caught:
        decode.check(bomb.getvalue())
    assert caught.value.code == "image_too_large"


def test_a_large_file_is_refused() -> None:
    with pytest.raises(InvalidImage) as caught:
        decode.check(drawn("PNG") + bytes(decode.MAX_BYTES))
    assert caught.value.code == "image_file_too_large"


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"])
def test_a_picture_is_made_no_larger_than_it_may_be(mode: str) -> None:
    out = BytesIO()
    Image.new(mode, (90, 30)).save(out, "PNG")
    assert decode.shrink(out.getvalue(), 90) == out.getvalue()
    small = decode.shrink(out.getvalue(), 45)
    decode.check(small)
    with Image.open(BytesIO(small)) as image:
        assert (image.size, image.format) == ((45, 15), "PNG")


def test_a_photo_that_was_held_upright_stays_upright() -> None:
    out, how = BytesIO(), Image.Exif()
    how[0x0112] = 6  # rotated by 90 degrees
    Image.new("RGB", (90, 30)).save(out, "JPEG", exif=how)
    with Image.open(BytesIO(decode.shrink(out.getvalue(), 45))) as image:
        assert image.size == (15, 45)


def test_a_header_has_the_size_as_shown_and_broken_data_has_none() -> None:
    out, exif = BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 20)).save(out, "JPEG", exif=exif)
    turned = out.getvalue()
    assert decode.header_size(f"data:image/jpeg;base64,{b64encode(turned).decode()}") == (20, 30)
    assert decode.header_size("data:image/png;base64,aGVsbG8=") is None
