"""Encryption keys derived from SECRET_KEY and, during a rotation, from SECRET_KEY_FALLBACKS."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

KEY_BYTES = 64
ID_LENGTH = 8
PROCESS_PURPOSE = b"verbatim process"


@dataclass(frozen=True, slots=True)
class Key:
    """Encryption key for a single purpose. `id` is a short hash and does not reveal the key."""

    id: str
    cipher: AESSIV


def secret_keys() -> list[str]:
    """List SECRET_KEY, for new data, and then the older keys, for existing data only."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def encryption_keys(purpose: bytes) -> Iterator[Key]:
    """Derive the keys for a purpose; the key derived from SECRET_KEY comes first."""
    return (_derive(secret, purpose) for secret in secret_keys())


def secret_key_ids() -> list[str]:
    """List short hashes of SECRET_KEY and of the older keys, by which processes compare their keys."""
    return [key.id for key in encryption_keys(PROCESS_PURPOSE)]


def decrypt_bytes(purpose: bytes, data: bytes, associated_data: Sequence[bytes], key_id: str | None = None) -> bytes | None:
    """Decrypt with the key `key_id`, or else with any matching key; None if no key matches.

    `associated_data` must be the same as at encryption.
    """
    for key in encryption_keys(purpose):
        if key_id not in (None, key.id):
            continue
        try:
            return key.cipher.decrypt(data, list(associated_data))
        except (InvalidTag, ValueError):
            continue
    return None


@cache
def _derive(secret: str, purpose: bytes) -> Key:
    material = HKDF(SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(secret.encode())
    return Key(hashlib.sha256(b"key id" + material).hexdigest()[:ID_LENGTH], AESSIV(material))
