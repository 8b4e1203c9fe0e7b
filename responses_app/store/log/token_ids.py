"""Encoding of token ids in columns: four bytes each, little-endian."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def encode_tokens(tokens: Sequence[int]) -> bytes:
    """Encode token ids: four bytes each, little-endian."""
    return struct.pack(f"<{len(tokens)}I", *tokens)


def decode_tokens(data: bytes) -> list[int]:
    """Decode the result of `encode_tokens`."""
    return list(struct.unpack(f"<{len(data) // 4}I", data))
