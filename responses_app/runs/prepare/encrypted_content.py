"""Reasoning and summaries as tokens that this server alone can open, and only for the project that they were made for."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from responses_app.errors import InvalidRequest
from responses_app.keyring import decrypt_bytes, encryption_keys
from responses_app.protocol.open_items import Encryptor
from responses_app.runs.create_request import CreateRequest

INCLUDE: Final = "reasoning.encrypted_content"
KEY: Final = "encrypted_content"
# Begins every token: the version, and in the second one the id of the key. No base64 has a dot.
VERSION: Final = "v2."
TOKEN: Final = re.compile(r"(?:(?P<first>v1)|(?P<version>v2)\.(?P<key>[0-9a-f]{8}))\.(?P<data>[A-Za-z0-9_=-]*)")
PURPOSE: Final = b"verbatim reasoning"


def encrypt(project: str, item: Mapping[str, Any]) -> str:
    """The `encrypted_content` of a reasoning item. The same item always has the same (D13): SIV needs no random nonce."""
    return _token(project, "reasoning", [part["text"] for part in item["content"]])


def seal_summary(project: str, summary: str) -> str:
    """The `encrypted_content` of a compaction item."""
    return _token(project, "compaction", [summary])


def encryptor(order: CreateRequest) -> Encryptor | None:
    """The writer's seal for this order, None where nobody asks for it."""
    return partial(encrypt, order.project) if INCLUDE in order.include else None


def _token(project: str, kind: str, texts: list[str]) -> str:
    key = next(encryption_keys(PURPOSE))
    data = key.cipher.encrypt(orjson.dumps(texts), _associated_data(VERSION, project, kind))
    return f"{VERSION}{key.id}.{urlsafe_b64encode(data).decode()}"


def decrypt(project: str, token: str, kind: str = "reasoning") -> list[str] | None:
    """The texts in a token; None if it was altered, or made for another project or kind of item, or with a key that is gone."""
    found = TOKEN.fullmatch(token)
    if found is None:
        return None
    try:
        raw = urlsafe_b64decode(found["data"])
    except ValueError:
        return None
    # base64 has several spellings of the same bytes; only ours counts.
    if urlsafe_b64encode(raw).decode() != found["data"]:
        return None
    clear = decrypt_bytes(PURPOSE, raw, _associated_data(f"{found['version'] or found['first']}.", project, kind), found["key"])
    texts: list[str] | None = None if clear is None else orjson.loads(clear)
    return texts


def decrypt_items(
    order: CreateRequest, before: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The history and the request's own items, with sealed contents in the clear. Raises Invalid for a token of the request.

    A token of the history that does not open any more (the server has another SECRET_KEY) is left alone: nobody can mend it.
    """
    told = [_open(order.project, item) or item for item in before]
    for index, (given, item) in enumerate(zip(order.input, own, strict=True)):
        found = _open(order.project, item)
        if found is None and given.get(KEY):
            message = f"The encrypted content for item {item['id']} could not be verified."
            raise InvalidRequest(message, param=f"input[{index}].{KEY}", code="invalid_encrypted_content")
        told.append(found or item)
    return told


def _open(project: str, item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The item as the model is told it; None if its token does not open."""
    kind = item["type"]
    if kind not in ("reasoning", "compaction") or not item.get(KEY):
        return item
    texts = decrypt(project, item[KEY], kind)
    if texts is None:
        return None
    if kind == "reasoning":
        return {**item, "content": [{"type": "reasoning_text", "text": text} for text in texts]}
    return {**item, "summary": texts[0]}


def redact(project: str, body: str, *, wanted: bool) -> str:
    """A stored item as a list shows it: with its sealed content if `include` asks for it, else without (§3.12)."""
    if '"type":"reasoning"' not in body:
        return body
    item = orjson.loads(body)
    return orjson.dumps(_sealed(project, item) if wanted else {key: item[key] for key in item if key != KEY}).decode()


def with_ciphertext(project: str, snapshot: bytes) -> bytes:
    """A snapshot whose reasoning items all have their sealed content."""
    response = orjson.loads(snapshot)
    return orjson.dumps({**response, "output": [_sealed(project, item) for item in response["output"]]})


def _sealed(project: str, item: Mapping[str, Any]) -> Mapping[str, Any]:
    if item["type"] != "reasoning" or item.get(KEY) or not item.get("content"):
        return item
    return {**item, KEY: encrypt(project, item)}


def _associated_data(version: str, project: str, kind: str) -> list[bytes]:
    """What a token is bound to without saying it."""
    return [version.encode(), project.encode(), kind.encode()]
