"""Request bodies that cost a server far more than their sender: grammars, schemas, images, texts, lists."""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import Any

from PIL import Image

GRAMMAR_LEVELS = 24
JPEG_SIDE_PX = 7000
JPEG_EXTRA_SCANS = 2000
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
_START_OF_SCAN, _END_OF_IMAGE, _HUFFMAN_TABLE = b"\xff\xda", b"\xff\xd9", b"\xff\xc4"


def create(model: str, **fields: Any) -> bytes:
    """Encode the body of `POST /v1/responses`."""
    return json.dumps({"model": model, "input": "Hi", "max_output_tokens": 16, **fields}).encode()


def chat_completion(model: str, **fields: Any) -> bytes:
    """Encode the body of `POST /v1/chat/completions`."""
    return json.dumps({"model": model, "messages": messages(1), "max_tokens": 16, **fields}).encode()


def message(model: str, **fields: Any) -> bytes:
    """Encode the body of `POST /v1/messages`."""
    return json.dumps({"model": model, "messages": messages(1), "max_tokens": 16, **fields}).encode()


def lark(model: str, definition: str) -> bytes:
    """Encode a request with a custom tool whose input follows a Lark grammar."""
    format_ = {"type": "grammar", "syntax": "lark", "definition": definition}
    return create(model, tools=[{"type": "custom", "name": "c", "format": format_}])


def regex(model: str, definition: str) -> bytes:
    """Encode a request with a custom tool whose input matches a regular expression."""
    format_ = {"type": "grammar", "syntax": "regex", "definition": definition}
    return create(model, tools=[{"type": "custom", "name": "c", "format": format_}])


def doubling_terminals(levels: int = GRAMMAR_LEVELS) -> str:
    """Return a Lark grammar whose first terminal expands to 2**levels characters."""
    rules = [f"T{level}: T{level + 1} T{level + 1}" for level in range(levels)]
    return "\n".join(["start: T0", *rules, f'T{levels}: "a"'])


def schema(model: str, value: dict[str, Any]) -> bytes:
    """Encode a request for structured output."""
    properties = {"type": "object", "properties": value, "additionalProperties": False}
    return create(model, text={"format": {"type": "json_schema", "name": "s", "schema": properties}})


def long_enum(model: str, number: int, values: int = 9_999, letters: int = 50) -> bytes:
    """Encode a schema with an enum of many long values; `number` makes each body another, so that no cache answers."""
    return schema(model, {"a": {"enum": [f"{number}-{value}".ljust(letters, "x") for value in range(values)]}})


def optional_properties(model: str, number: int, objects: int = 9, properties: int = 990) -> bytes:
    """Encode a schema of objects in which every property may be left out."""
    names = {f"p{number}_{name}": {"type": "string"} for name in range(properties)}
    return schema(model, {f"o{index}": {"type": "object", "properties": names} for index in range(objects)})


def progressive_jpeg(scans: int = JPEG_EXTRA_SCANS) -> bytes:
    """Return a JPEG of 49 megapixels with `scans` additional scans of about 100 bytes; a decoder walks all pixels for each."""
    plain = io.BytesIO()
    Image.new("L", (JPEG_SIDE_PX, JPEG_SIDE_PX), 128).save(plain, "JPEG", progressive=True)
    data = plain.getvalue()
    last = data.rindex(_START_OF_SCAN)
    table = data.rindex(_HUFFMAN_TABLE, 0, last)
    scan = data[table : data.rindex(_END_OF_IMAGE)]
    return data[: data.rindex(_END_OF_IMAGE)] + scan * scans + _END_OF_IMAGE


def image_message(picture: bytes) -> dict[str, Any]:
    """Return a user message with an image as a data URL."""
    url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
    return {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]}


def mcp(model: str, url: str) -> bytes:
    """Encode a request with the tools of an MCP server."""
    return create(model, tools=[{"type": "mcp", "server_label": "s", "server_url": url, "require_approval": "never"}])


def slow_pdf(pages: int, repeats: int = 4000) -> bytes:
    """Return a small PDF whose many pages have the same long content."""
    content = b"BT /F1 12 Tf 72 720 Td " + b"(Oslo and Bergen) Tj 0 -1 Td " * repeats + b"ET"
    packed = zlib.compress(content)
    kids = b" ".join(b"%d 0 R" % (5 + number) for number in range(pages))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        *[page] * pages,
    ]
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))


def messages(count: int, text: str = "word") -> list[dict[str, str]]:
    """Return many short user messages."""
    return [{"role": "user", "content": text} for _ in range(count)]


def texts(count: int) -> list[dict[str, Any]]:
    """Return a user message of many short texts, for Chat Completions and Messages."""
    return [{"role": "user", "content": [{"type": "text", "text": "word"}] * count}]


def calls(count: int) -> list[dict[str, Any]]:
    """Return a conversation of Messages with many calls in an answer, and the results in the next message."""
    uses = [{"type": "tool_use", "id": f"t{number}", "name": "f", "input": {"a": "b"}} for number in range(count)]
    results = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "word"} for number in range(count)]
    return [*messages(1), {"role": "assistant", "content": uses}, {"role": "user", "content": results}]


def chat_functions(count: int) -> list[dict[str, Any]]:
    """Return many function tools of Chat Completions."""
    return [{"type": "function", "function": {"name": f"f{number}", "parameters": PARAMETERS}} for number in range(count)]


def client_tools(count: int) -> list[dict[str, Any]]:
    """Return many tools of Messages."""
    return [{"name": f"f{number}", "input_schema": PARAMETERS} for number in range(count)]


def functions(count: int) -> list[dict[str, Any]]:
    """Return many function tools."""
    return [{"type": "function", "name": f"f{number}", "parameters": PARAMETERS} for number in range(count)]
