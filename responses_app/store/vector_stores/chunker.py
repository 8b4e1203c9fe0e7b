"""Chunker: divides a text into overlapping chunks by tokens of o200k, which the harmony library contains."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DEFAULT_CHUNK_TOKENS = 800
DEFAULT_OVERLAP_TOKENS = 400
MIN_CHUNK_TOKENS = 100
MAX_CHUNK_TOKENS = 4096
# The tokenizer gets slices of this many characters. So the time for a long text without blanks stays proportional to the length.
SLICE_CHARS = 4000
# A chunk may end earlier by this share of its tokens, so that it ends with a line or a word.
MAX_SHORTENING = 0.1
# Position of lead bytes in UTF-8: all others continue a character.
_CONTINUATION, _LEAD_BITS = 0x80, 0xC0


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Chunk of a text. `start` is the position in the text in characters, `tokens` the number of tokens."""

    text: str
    tokens: int
    start: int


def chunk_text(
    text: str, chunk_tokens: int = DEFAULT_CHUNK_TOKENS, overlap_tokens: int = DEFAULT_OVERLAP_TOKENS
) -> list[TextChunk]:
    """Divide `text` into chunks of at most `chunk_tokens` tokens. Neighbours share about `overlap_tokens` tokens.

    The overlap is at most half of a chunk. Chunks without a visible character are left out.
    """
    overlap_tokens = min(overlap_tokens, chunk_tokens // 2)
    offsets = token_offsets(text)
    chunks = (
        TextChunk(text[offsets[start] : offsets[end]], end - start, offsets[start])
        for start, end in _windows(text, offsets, chunk_tokens, overlap_tokens)
    )
    return [chunk for chunk in chunks if chunk.text.strip()]


def token_offsets(text: str) -> list[int]:
    """Return the position of each token in `text`, in characters, and the length of `text` as the last position."""
    offsets = []
    for at in range(0, len(text), SLICE_CHARS):
        position = at
        # A lone surrogate has no bytes in UTF-8. The replacement has the same length in characters.
        piece = text[at : at + SLICE_CHARS].encode("utf-8", "replace").decode("utf-8")
        for token in _encoding().encode(piece, disallowed_special=()):
            offsets.append(position)
            position += _lead_bytes(token)
    return [*offsets, len(text)]


def count_tokens(text: str) -> int:
    """Return the number of tokens of `text`."""
    return len(token_offsets(text)) - 1


def _windows(text: str, offsets: list[int], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield the first token of each chunk, and the token behind the last."""
    start, last = 0, len(offsets) - 1
    while start < last:
        end = start + size
        if end >= last:
            yield start, last
            return
        end = _shortened(text, offsets, start, end, int(size * MAX_SHORTENING))
        yield start, end
        start = end - min(overlap, (end - start) // 2)


def _shortened(text: str, offsets: list[int], start: int, end: int, most: int) -> int:
    """Return the end of a chunk behind a line feed, else behind a blank, at most `most` tokens before `end`."""
    for separator in ("\n", " "):
        for candidate in range(end, max(start, end - most), -1):
            position = offsets[candidate]
            # A token of a word begins with the blank before the word.
            if separator in text[offsets[candidate - 1] : position] or text[position : position + 1] == separator:
                return candidate
    return end


@functools.cache
def _encoding() -> Any:
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


@functools.lru_cache(maxsize=65_536)
def _lead_bytes(token: int) -> int:
    """Return the number of characters that begin in `token`."""
    return sum(byte & _LEAD_BITS != _CONTINUATION for byte in _encoding()._inner.decode_bytes([token]))
