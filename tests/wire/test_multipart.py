"""Forms with a file that are refused: errors in words of the API, without those of Django's parser."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from responses_app.errors import InvalidRequest
from responses_app.validation.base import NUL_REFUSED
from responses_app.wire.multipart import FileForm, parse_form

TYPE = "multipart/form-data; boundary=b"
END = b"\r\n--b--\r\n"


def parse(path: Path, content_type: str, head: bytes, data: bytes = b"x") -> FileForm:
    body = b"--b\r\n" + head + b"\r\n\r\n" + data + END
    return parse_form(content_type, BytesIO(body), path / "file", (), 1000)


def disposition(name: bytes) -> bytes:
    return b'Content-Disposition: form-data; name="file"; filename' + name


@pytest.mark.parametrize("content_type", [TYPE, "Multipart/Form-Data; boundary=b", 'MULTIPART/FORM-DATA; BOUNDARY="b"'])
def test_content_type_may_have_capitals(tmp_path: Path, content_type: str) -> None:
    assert parse(tmp_path, content_type, disposition(b'="a.txt"')).filename == "a.txt"


@pytest.mark.parametrize("name", [b'="a\0b.txt"', b"*=utf-8''a%00b.txt"])
def test_name_with_nul_is_refused(tmp_path: Path, name: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(tmp_path, TYPE, disposition(name))
    assert (caught.value.param, caught.value.code) == ("file", "invalid_value")
    assert str(caught.value) == f"Invalid 'file': the name of the file: {NUL_REFUSED}"


@pytest.mark.parametrize("name", ["全角\u3000空白.txt", "👩\u200d💻.txt", "می\u200cخواهم.txt", "a\u00a0b.txt", "AT&T&copy.txt"])
def test_name_keeps_characters_that_cannot_be_printed(tmp_path: Path, name: str) -> None:
    assert parse(tmp_path, TYPE, disposition(f'="x/{name}"'.encode())).filename == name


@pytest.mark.parametrize(("name", "character"), [(b"*=utf-8''a%0Ab.txt", "U+000A"), (b'="a\x7fb.txt"', "U+007F")])
def test_name_with_a_control_character_is_refused(tmp_path: Path, name: bytes, character: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(tmp_path, TYPE, disposition(name))
    assert (caught.value.param, caught.value.code) == ("file", "invalid_value")
    assert character in str(caught.value)


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary=é", "multipart/form-data; boundary="]
)
def test_missing_boundary_is_named(tmp_path: Path, content_type: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(tmp_path, content_type, disposition(b'="a.txt"'))
    assert str(caught.value) == "The form cannot be parsed: the header 'Content-Type' has no valid 'boundary'."


@pytest.mark.parametrize(
    ("head", "data"),
    [
        (disposition(b'="a.txt"') + b"\r\nContent-Transfer-Encoding: base64", b"a"),
        (disposition(b'="a.txt"') + b"\r\nX: " + b"x" * 2000, b"x"),
    ],
)
def test_part_that_cannot_be_parsed_is_named(tmp_path: Path, head: bytes, data: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(tmp_path, TYPE, head, data)
    assert str(caught.value) == "The form cannot be parsed: the headers or the encoding of a part are not valid."
