"""The vocabulary of gpt-oss, read from the harmony library, where it travels inside the binary."""

from __future__ import annotations

import functools
from typing import Any

ORDINARY = 199_998


@functools.cache
def encoding() -> Any:
    """Load the encoding of gpt-oss from the harmony library."""
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


@functools.cache
def pieces() -> list[bytes]:
    """The bytes of every ordinary token, in the order of the ids."""
    decode = encoding()._inner.decode_bytes
    return [decode((token,)) for token in range(ORDINARY)]
