"""Secrets of a request: HTTP headers for MCP servers, encrypted while another process may continue the run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, TypeAlias

import orjson

from responses_app.installation.keyring import decrypt_bytes, encryption_keys

logger = logging.getLogger("responses.secrets")

PURPOSE: Final = b"verbatim request secrets"
# HTTP headers by the label of the server.
Secrets: TypeAlias = Mapping[str, Mapping[str, str]]


def encrypt_secrets(uid: str, secrets: Secrets) -> bytes | None:
    """Encrypt the secrets of the response `uid`; None without secrets. The result can be decrypted for this response only."""
    if not secrets:
        return None
    return next(encryption_keys(PURPOSE)).cipher.encrypt(orjson.dumps(secrets), [uid.encode()])


def decrypt_secrets(uid: str, data: bytes | memoryview | None) -> Secrets:
    """Decrypt the result of `encrypt_secrets`. Return no secrets if the key is gone: the servers then refuse the calls."""
    if data is None:
        return {}
    clear = decrypt_bytes(PURPOSE, bytes(data), [uid.encode()])
    if clear is None:
        logger.error("%s: the secrets for MCP servers cannot be decrypted: SECRET_KEY has changed", uid)
        return {}
    secrets: Secrets = orjson.loads(clear)
    return secrets
