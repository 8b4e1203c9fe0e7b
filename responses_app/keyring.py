"""The keys that are derived from SECRET_KEY and, while it is rotated, from SECRET_KEY_FALLBACKS."""

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


@dataclass(frozen=True, slots=True)
class Key:
    """An encryption key for one purpose, and the short id that names it without telling it."""

    id: str
    cipher: AESSIV


def secret_keys() -> list[str]:
    """List SECRET_KEY, which makes what is new, and the older ones, which are still taken."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def encryption_keys(purpose: bytes) -> Iterator[Key]:
    """Derive the keys for a purpose, that of SECRET_KEY first."""
    return (_derived(secret, purpose) for secret in secret_keys())


def decrypted(purpose: bytes, data: bytes, bound: Sequence[bytes], key_id: str | None = None) -> bytes | None:
    """Decrypt with the key of this id, or with whichever fits; None if none does. `bound` is what it was encrypted with."""
    for key in encryption_keys(purpose):
        if key_id not in (None, key.id):
            continue
        try:
            return key.cipher.decrypt(data, list(bound))
        except (InvalidTag, ValueError):
            continue
    return None


@cache
def _derived(secret: str, purpose: bytes) -> Key:
    material = HKDF(SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(secret.encode())
    return Key(hashlib.sha256(b"key id" + material).hexdigest()[:ID_LENGTH], AESSIV(material))
