"""Starting rows for every token of a vocabulary: two spellings of one word begin alike, all else is random and reproducible.

A token that training never touches keeps this row, for reading and for writing. It means nothing, but it can be copied: a name that nobody
has ever seen travels from the question into the answer because its row is as good an address as any other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
_WORD, _TOKEN, _KIND = 0.75, 0.5, 0.4
# Rows say nothing beyond these places: what is left of the width is for notes that the first layer makes.
SPELT = 192
# Rows that are computed at a time.
CHUNK = 1 << 10


def signs(seed: int, rows: int, width: int) -> Floats:
    """Random signs made from raw generator bits, which no version of numpy may change."""
    words = -(-width // 64)
    raw = np.random.PCG64(seed).random_raw(rows * words).view(np.uint8).reshape(rows, words * 8)
    bits = np.unpackbits(raw, axis=1)[:, :width]
    size = np.float32(1) / np.float32(np.sqrt(width))
    return np.array([-size, size])[bits]


def _kind(spelling: bytes) -> int:
    bare = spelling.strip()
    case = 0 if bare.islower() else 1 if bare.isupper() and len(bare) > 1 else 2 if bare[:1].isupper() else 3
    return case * 2 + spelling.startswith(b" ")


def starting_rows(spellings: list[bytes], width: int) -> Floats:
    """One row per token: its word, whatever the case and the space; the token itself; its way of being spelt. Zeros beyond SPELT."""
    first: dict[bytes, int] = {}
    bases = np.array([first.setdefault(s.strip().lower() or s, i) for i, s in enumerate(spellings)])
    kinds = np.array([_kind(s) for s in spellings])
    word, token, kind = signs(1, len(spellings), SPELT), signs(2, len(spellings), SPELT), signs(3, 8, SPELT)
    rows: Floats = np.zeros((len(spellings), width), dtype=np.float32)
    # In pieces that stay in the cache of a processor.
    for part in (slice(start, start + CHUNK) for start in range(0, len(rows), CHUNK)):
        rows[part, :SPELT] = _WORD * word[bases[part]] + _TOKEN * token[part] + _KIND * kind[kinds[part]]
    return rows
