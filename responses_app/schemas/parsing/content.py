"""Content parts of messages and of tool outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field

from responses_app.errors import InvalidRequest, unknown_file
from responses_app.extraction.errors import UNSUPPORTED
from responses_app.images.decode import InvalidImage, is_data_url, media_type
from responses_app.models import MAX_FILENAME_CHARS
from responses_app.outbound_http import download
from responses_app.runs.ids import is_id
from responses_app.runs.prepare.media import image_fetcher
from responses_app.schemas.items import valid
from responses_app.schemas.options import CacheBreakpoint
from responses_app.validation.base import IMAGE_URL_LIMIT, Array, LongText, StrictModel, check_length, drop_nulls
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing, missing_type, shorten, wrong_type


class ContentPart(StrictModel):
    """Text part of input or output. Clients that replay output send annotations and log-probabilities back."""

    type: str
    text: LongText
    annotations: Array[dict[str, Any]] | None = None
    logprobs: Array[dict[str, Any]] | None = None
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class ImagePart(StrictModel):
    """Image, as a data URL or a web address."""

    type: Literal["input_image"]
    image_url: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto", "original"] = "auto"
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class FilePart(StrictModel):
    """File, as an id of an uploaded file, a data URL or a web address."""

    type: Literal["input_file"]
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: Annotated[str, Field(max_length=MAX_FILENAME_CHARS)] | None = None
    detail: Literal["auto", "low", "high"] | None = None
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class RefusalPart(StrictModel):
    """Earlier refusal of the model."""

    type: str
    refusal: LongText


INPUT_PARTS = ("input_text", "input_image", "input_file")
FILE_SOURCES = ("file_id", "file_data", "file_url")
RULE_PARTS = ("input_text",)
OUTPUT_PARTS = ("output_text", "refusal")
# Parts of the API that this server does not accept; naming these parts gives a better error than "unknown".
UNSUPPORTED_PARTS = frozenset({"input_audio"})
DATA_URL = re.compile(r"data:(?P<type>[^;,]{1,256})(?:;[^;,]{0,256}){0,8};base64,", re.IGNORECASE)
# Top-level media types that are no documents.
NOT_DOCUMENTS = ("audio/", "video/", "image/", "font/")
PARTS_OF_ROLES: Mapping[str, tuple[str, ...]] = {
    "user": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
    "system": RULE_PARTS,
    "developer": RULE_PARTS,
}


def content(raw: object, loc: Loc, allowed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Parse the content of a message, a text or a list of parts of the `allowed` types. Raises InvalidRequest."""
    if raw is ...:
        raise missing(loc)
    if isinstance(raw, str):
        return [_part({"type": allowed[0], "text": raw}, loc, allowed)]
    if not isinstance(raw, list):
        raise wrong_type(json_path(loc), "a string or an array", raw)
    return [_part(one, (*loc, index), allowed) for index, one in enumerate(check_length(raw, loc))]


def _part(raw: object, loc: Loc, allowed: tuple[str, ...]) -> dict[str, Any]:
    raw = drop_nulls(raw, loc)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    if kind in UNSUPPORTED_PARTS:
        message = f"Unsupported content part '{kind}' at '{json_path(loc)}': this server takes texts, images and files."
        raise InvalidRequest(message, param=json_path(loc), code="unsupported_value")
    if kind in ("input_image", "input_file") and allowed is RULE_PARTS:
        message = (
            f"Unsupported content part '{kind}' at '{json_path(loc)}': "
            "images and files are taken in messages of the user and in outputs of tools."
        )
        raise InvalidRequest(message, param=json_path(loc), code="unsupported_value")
    if kind not in allowed:
        raise invalid_value(f"{json_path(loc)}.type", kind, allowed)
    if kind == "refusal":
        return valid(RefusalPart, raw, loc)
    if kind == "input_image":
        return _image(raw, loc)
    if kind == "input_file":
        return _file(raw, loc)
    part = valid(ContentPart, raw, loc)
    if kind == "output_text":
        return {
            "type": kind,
            "text": part["text"],
            "annotations": part.get("annotations", []),
            "logprobs": part.get("logprobs", []),
        }
    return {"type": kind, "text": part["text"]}


def _file(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Check a file without reading or downloading; `runs.prepare.resolve` does both later."""
    part = valid(FilePart, raw, loc)
    sources = [name for name in FILE_SOURCES if name in part]
    if len(sources) != 1:
        expected = ", ".join(f"'{name}'" for name in FILE_SOURCES)
        raise invalid(loc, f"expected exactly one of {expected}, but got {len(sources)} of them.")
    _check_file_data(part, loc)
    _check_file_url(part, loc)
    return {"type": "input_file", **{name: part[name] for name in (*sources, "filename", "detail") if name in part}}


def _check_file_data(part: Mapping[str, Any], loc: Loc) -> None:
    """Check that the data of a file is a data URL of a document. Raises InvalidRequest."""
    data = part.get("file_data")
    if data is None:
        return
    where = json_path((*loc, "file_data"))
    head = DATA_URL.match(data)
    if head is not None and not head["type"].lower().startswith(NOT_DOCUMENTS):
        return
    came, code = ("something else", "invalid_value")
    if head is not None:
        came, code = f"unsupported MIME type '{shorten(head['type'])}'", UNSUPPORTED
    message = (
        f"Invalid '{where}'. Expected a base64-encoded data URL of a document (e.g. 'data:application/pdf;base64,aGVsbG8='), "
        f"but got {came}."
    )
    raise InvalidRequest(message, param=where, code=code)


def _check_file_url(part: Mapping[str, Any], loc: Loc) -> None:
    url = part.get("file_url")
    if url is None:
        return
    # The settings of images are also those of files.
    problem = download.url_problem(url, settings.RESPONSES_IMAGE_HOSTS)
    if settings.RESPONSES_IMAGE_URLS == "none":
        problem = "this server does not download files; send the file in 'file_data', or upload the file"
    if problem is not None:
        raise invalid((*loc, "file_url"), f"{problem}.")


def _image(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Check an image without decoding or fetching; `runs.prepare.resolve` does both later."""
    part = valid(ImagePart, raw, loc)
    if "file_id" in part and "image_url" not in part:
        return {"type": "input_image", "detail": part["detail"], "file_id": image_file_id(part, loc)}
    return {"type": "input_image", "detail": part["detail"], "image_url": image_url(part, loc)}


def image_file_id(part: Mapping[str, Any], loc: Loc) -> str:
    """Return the id of an uploaded image. Raises InvalidRequest."""
    file_id = str(part["file_id"])
    if not is_id(file_id):
        raise unknown_file(file_id, json_path((*loc, "file_id")))
    return file_id


def image_url(part: Mapping[str, Any], loc: Loc) -> str:
    """Return the URL of an image part or a screenshot. Raises InvalidRequest."""
    if "file_id" in part:
        where = json_path((*loc, "file_id"))
        message = f"Unsupported parameter: '{where}': give the image in 'image_url' alone."
        raise InvalidRequest(message, param=where, code="unsupported_parameter")
    where = json_path((*loc, "image_url"))
    url = part.get("image_url")
    if not url:
        raise missing((*loc, "image_url"))
    check = media_type if is_data_url(url) else image_fetcher().check
    try:
        check(url)
    except InvalidImage as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    return str(url)
