"""Multipart forms (RFC 7578) with a file: the bytes of the file go to a local file while the form is parsed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent, TooManyFilesSent
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from responses_app.errors import InvalidRequest, PayloadTooLarge
from responses_app.validation.base import NUL_REFUSED
from responses_app.wire.asgi_extensions import BODY_FILE

FORM: Final = "multipart/form-data"
FILE: Final = "file"
CHUNK_BYTES: Final = 256 * 1024
# Bytes of a form beside the file: the other fields, and the parts of the body that the parser holds.
MAX_OTHER_BYTES: Final = 1024 * 1024 + 4 * CHUNK_BYTES
MIB: Final = 1024 * 1024
# Longer than the last boundary, which has at most 70 characters (RFC 2046 §5.1.1).
TAIL_BYTES: Final = 1024
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Readable(Protocol):
    """Stream with the body of a request."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes."""
        ...


@dataclass(frozen=True, slots=True)
class FileForm:
    """Form with a file: the other fields by name, and name, size in bytes and SHA-256 of the file."""

    fields: Mapping[str, str]
    filename: str
    size: int
    sha256: str


def body_stream(request: HttpRequest) -> Readable:
    """Return the body of `request` as a stream. Our HTTP server passes the body of an upload on as a file, other servers do not."""
    scope: Mapping[str, Any] = getattr(request, "scope", {})
    stream: Readable = scope.get("extensions", {}).get(BODY_FILE) or request
    return stream


def parse_form(
    content_type: str, body: Readable, path: Path, known: Collection[str], max_bytes: int, *, needs_file: bool = True
) -> FileForm:
    """Parse a form and write the part `file` to `path`, which must not exist, with mode 0600. Raises ApiError.

    `known` are the names of the other fields, `max_bytes` is the limit of the file. Without `needs_file` a form without a file has
    an empty `filename`.
    """
    if not content_type.lower().startswith(FORM):
        raise InvalidRequest("Send the file as 'multipart/form-data', in the part 'file'.")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        handler = _FileWriter(out, max_bytes)
        source = _CountedBody(body, handler)
        fields = _parse(content_type, source, handler)
        out.flush()
        os.fsync(out.fileno())
    _check_names(fields, known)
    if handler.filename is None and needs_file:
        raise InvalidRequest("Missing required parameter: 'file'.", param=FILE, code="missing_required_parameter")
    return FileForm(
        {name: values[0] for name, values in fields.items()}, handler.filename or "", handler.size, handler.sha256.hexdigest()
    )


def _parse(content_type: str, source: _CountedBody, handler: _FileWriter) -> Mapping[str, list[str]]:
    # The parser reads to the end of the body and needs the length only to be above 0.
    meta = {"CONTENT_TYPE": FORM + content_type[len(FORM) :], "CONTENT_LENGTH": "1"}
    try:
        parser: Any = _Parser(meta, cast(Any, source), [handler])
    except MultiPartParserError as error:
        raise InvalidRequest("The form cannot be parsed: the header 'Content-Type' has no valid 'boundary'.") from error
    try:
        fields, _ = parser.parse()
    except (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent) as error:
        # The words of Django name its settings.
        raise PayloadTooLarge("The form has too many parts, or too long ones.") from error
    except (MultiPartParserError, SuspiciousOperation, ValueError) as error:
        # The words of Django are for its users. A ValueError also comes from a body that is closed when the client disconnects.
        raise InvalidRequest("The form cannot be parsed: the headers or the encoding of a part are not valid.") from error
    boundary = parser._boundary
    if b"--" + boundary + b"--" not in source.tail:
        raise InvalidRequest("The form cannot be parsed: the last boundary is missing, so the form is incomplete.")
    return dict(fields.lists())


def _check_names(fields: Mapping[str, list[str]], known: Collection[str]) -> None:
    for name, values in fields.items():
        if name == FILE:
            raise InvalidRequest("Invalid type for 'file': expected a file with a name.", param=FILE, code="invalid_type")
        if name not in known:
            raise InvalidRequest(f"Unknown parameter: '{name[:200]}'.", param=name, code="unknown_parameter")
        if len(values) > 1:
            raise InvalidRequest(f"Invalid '{name}': the form has it {len(values)} times.", param=name, code="invalid_value")


class _Parser(MultiPartParser):
    """Parser of Django that keeps the characters of a file's name. Django drops all that Python cannot print, as in `a\u3000b.txt`."""

    def sanitize_file_name(self, file_name: str) -> str | None:
        """Return the name without folders (overrides Django). Raises InvalidRequest for NUL and other control characters."""
        if "\0" in file_name:
            raise _invalid_name(NUL_REFUSED)
        if match := CONTROL.search(file_name):
            raise _invalid_name(f"the control character U+{ord(match[0]):04X} is not supported.")
        name = re.split(r"[/\\]", file_name)[-1]
        return None if name in ("", ".", "..") else name


def _invalid_name(problem: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid 'file': the name of the file: {problem}", param=FILE, code="invalid_value")


class _FileWriter(FileUploadHandler):
    """Upload handler of Django that writes the part `file` and refuses other files."""

    chunk_size = CHUNK_BYTES

    def __init__(self, out: IO[bytes], max_bytes: int) -> None:
        super().__init__()
        self._out, self._max_bytes, self.sha256 = out, max_bytes, hashlib.sha256()
        self.filename: str | None = None
        self.size = 0

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        """Begin a file (Django's interface). Raises InvalidRequest for a second file or another name."""
        super().new_file(field_name, file_name, *args, **kwargs)
        if field_name != FILE:
            raise InvalidRequest(f"Unknown parameter: '{field_name[:200]}'.", param=field_name, code="unknown_parameter")
        if self.filename is not None:
            raise InvalidRequest("Invalid 'file': the form has more than 1 file.", param=FILE, code="invalid_value")
        self.filename = file_name

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a piece of the file (Django's interface). Raises PayloadTooLarge."""
        del start
        self.size += len(raw_data)
        if self.size > self._max_bytes:
            raise PayloadTooLarge(f"The file is larger than {self._max_bytes // MIB} MiB.", param=FILE)
        self.sha256.update(raw_data)
        self._out.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        """End the file (Django's interface)."""
        del file_size


class _CountedBody:
    """Body with a limit on the bytes beside the file. `tail` is the end of the bytes read."""

    def __init__(self, body: Readable, handler: _FileWriter) -> None:
        self._body, self._handler = body, handler
        self._size = 0
        self.tail = b""

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes. Raises PayloadTooLarge."""
        data = self._body.read(size)
        self._size += len(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        if self._size - self._handler.size > MAX_OTHER_BYTES:
            raise PayloadTooLarge("The fields of the form beside the file are larger than 1 MiB.")
        return data
