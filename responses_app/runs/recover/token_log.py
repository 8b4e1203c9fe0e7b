"""What a model has said, as the log keeps it beside the events: a run that is continued hears it again (decision F1)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from responses_app.engine_interface import Chunk, Logprob

# The first byte says what follows: the ids of one chunk, four bytes each; or JSON, for several chunks or with log-probabilities.
PLAIN, WHOLE = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class RecordedTokens:
    """Chunks in the order and the grouping in which they came. `closed`: after them the listener was told that this was all."""

    chunks: Sequence[Chunk]
    closed: bool = False


def pack(chunks: Sequence[Chunk], *, closed: bool = False) -> bytes | None:
    """The bytes of it; None if nothing was said."""
    told = [chunk for chunk in chunks if chunk.tokens]
    if not told and not closed:
        return None
    if len(told) == 1 and not closed and not told[0].logprobs:
        tokens = told[0].tokens
        return PLAIN + struct.pack(f"<{len(tokens)}I", *tokens)
    return WHOLE + orjson.dumps([closed, [[list(chunk.tokens), [_flat(one) for one in chunk.logprobs]] for chunk in told]])


def unpack(data: bytes) -> RecordedTokens:
    """What `pack` made bytes of."""
    if data[:1] == PLAIN:
        return RecordedTokens([Chunk(struct.unpack(f"<{len(data) // 4}I", data[1:]))])
    closed, chunks = orjson.loads(data[1:])
    return RecordedTokens([Chunk(tuple(tokens), tuple(_round(one) for one in logprobs)) for tokens, logprobs in chunks], closed)


def _flat(one: Logprob) -> list[object]:
    return [one.token, one.logprob, [list(pair) for pair in one.top]]


def _round(raw: list[object]) -> Logprob:
    token, value, top = raw
    return Logprob(token, value, [(other, worth) for other, worth in top])  # type: ignore[arg-type, attr-defined]
