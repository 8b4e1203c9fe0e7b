"""`encrypted_content` of reasoning and compaction items: tokens that only this server can decrypt, for a project."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from responses_app.errors import InvalidRequest
from responses_app.installation.keyring import decrypt_bytes, encryption_keys
from responses_app.protocol.items.base import Encryptor
from responses_app.runs.create_request import CreateRequest

INCLUDE: Final = "reasoning.encrypted_content"
KEY: Final = "encrypted_content"
# Prefix of a token: the version; version 2 has the id of the key behind it. Base64 contains no dot.
VERSION: Final = "v2."
TOKEN: Final = re.compile(r"(?:(?P<first>v1)|(?P<version>v2)\.(?P<key>[0-9a-f]{8}))\.(?P<data>[A-Za-z0-9_=-]*)")
PURPOSE: Final = b"verbatim reasoning"


def encrypt(project: str, item: Mapping[str, Any]) -> str:
    """Encrypt the content of a reasoning item. Equal items have equal tokens: SIV needs no random nonce."""
    return _token(project, "reasoning", [part["text"] for part in item["content"]])


def seal_summary(project: str, summary: str) -> str:
    """Encrypt the summary of a compaction item."""
    return _token(project, "compaction", [summary])


def encryptor(create_request: CreateRequest) -> Encryptor | None:
    """Return the encryption function for the writer; None unless the request includes `reasoning.encrypted_content`."""
    return partial(encrypt, create_request.project) if INCLUDE in create_request.include else None


def _token(project: str, kind: str, texts: list[str]) -> str:
    key = next(encryption_keys(PURPOSE))
    data = key.cipher.encrypt(orjson.dumps(texts), _associated_data(VERSION, project, kind))
    return f"{VERSION}{key.id}.{urlsafe_b64encode(data).decode()}"


def decrypt(project: str, token: str, kind: str = "reasoning") -> list[str] | None:
    """Decrypt a token. Return None if the token was altered, or is for another project or item type, or the key is gone."""
    match = TOKEN.fullmatch(token)
    if match is None:
        return None
    try:
        raw = urlsafe_b64decode(match["data"])
    except ValueError:
        return None
    # Base64 has several spellings of the same bytes; only the canonical one is accepted.
    if urlsafe_b64encode(raw).decode() != match["data"]:
        return None
    clear = decrypt_bytes(PURPOSE, raw, _associated_data(f"{match['version'] or match['first']}.", project, kind), match["key"])
    texts: list[str] | None = None if clear is None else orjson.loads(clear)
    return texts


def decrypt_items(
    create_request: CreateRequest, before: Sequence[Mapping[str, Any]], input_items: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Decrypt the items of the history and of the request. Raises InvalidRequest for an invalid token in the request.

    An invalid token in the history (the server has another SECRET_KEY) stays as it is: the client cannot correct it.
    """
    decrypted_items = [_open(create_request.project, item) or item for item in before]
    for index, (sent_item, item) in enumerate(zip(create_request.input, input_items, strict=True)):
        decrypted = _open(create_request.project, item)
        if decrypted is None and sent_item.get(KEY):
            message = f"The encrypted content for item {item['id']} could not be verified."
            raise InvalidRequest(message, param=f"input[{index}].{KEY}", code="invalid_encrypted_content")
        decrypted_items.append(decrypted or item)
    return decrypted_items


def _open(project: str, item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the item with decrypted content; None if the token is invalid."""
    kind = item["type"]
    if kind not in ("reasoning", "compaction") or not item.get(KEY):
        return item
    texts = decrypt(project, item[KEY], kind)
    if texts is None:
        return None
    if kind == "reasoning":
        return {**item, "content": [{"type": "reasoning_text", "text": text} for text in texts]}
    return {**item, "summary": texts[0]}


def redact(project: str, body: str, *, with_ciphertext: bool) -> str:
    """Return a stored item for a list: with `encrypted_content` if the request includes the field, otherwise without."""
    if '"type":"reasoning"' not in body:
        return body
    item = orjson.loads(body)
    return orjson.dumps(_sealed(project, item) if with_ciphertext else {key: item[key] for key in item if key != KEY}).decode()


def with_ciphertext(project: str, snapshot: bytes) -> bytes:
    """Add `encrypted_content` to all reasoning items of a snapshot."""
    response = orjson.loads(snapshot)
    return orjson.dumps({**response, "output": [_sealed(project, item) for item in response["output"]]})


def _sealed(project: str, item: Mapping[str, Any]) -> Mapping[str, Any]:
    if item["type"] != "reasoning" or item.get(KEY) or not item.get("content"):
        return item
    return {**item, KEY: encrypt(project, item)}


def _associated_data(version: str, project: str, kind: str) -> list[bytes]:
    """Return the associated data of a token: authenticated with the token, but not part of the token."""
    return [version.encode(), project.encode(), kind.encode()]
