"""Token log: the input of a run beside the events, so that another process can produce the same events again and continue.

Token ids in columns have four bytes each, little-endian.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import orjson

from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import ForItem
from responses_app.protocol.items.registry import FAMILIES

# First byte of the packed entries: token ids of a single chunk, four bytes each; token ids of as many chunks; or JSON for anything
# else.
PLAIN, JSON, SINGLE_TOKENS = b"\x00", b"\x01", b"\x02"


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """End of the generation of a round: the parser finished. `prompt` and `cached` are the prompt tokens of the round."""

    prompt: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class RoundStart:
    """Start of a round after the first round, with the tokens of the prompt."""

    prompt: Sequence[int]


@dataclass(frozen=True, slots=True)
class CallStart:
    """Begin mark of the call at `output_index`: from here on the tool may have run."""

    output_index: int


Entry: TypeAlias = Chunk | RoundStart | RoundEnd | CallStart | ForItem


def encode_tokens(tokens: Sequence[int]) -> bytes:
    """Encode token ids: four bytes each, little-endian."""
    return struct.pack(f"<{len(tokens)}I", *tokens)


def decode_tokens(data: bytes) -> list[int]:
    """Decode the result of `encode_tokens`."""
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def pack(entries: Sequence[Entry]) -> bytes | None:
    """Pack entries into bytes; None if there is nothing to save. Chunks without tokens are left out."""
    if len(entries) == 1:
        entry = entries[0]
        if isinstance(entry, Chunk) and not entry.logprobs:
            tokens = entry.tokens
            return PLAIN + encode_tokens(tokens) if tokens else None
    elif singles := _single_tokens(entries):
        return SINGLE_TOKENS + encode_tokens(singles)
    raw = [_to_json(entry) for entry in entries if not isinstance(entry, Chunk) or entry.tokens]
    return JSON + orjson.dumps(raw) if raw else None


def unpack(data: bytes) -> list[Entry]:
    """Unpack the entries that `pack` packed, in the same order and with the same chunks."""
    if data[:1] != JSON:
        tokens = decode_tokens(data[1:])
        return [Chunk(tuple(tokens))] if data[:1] == PLAIN else [Chunk((token,)) for token in tokens]
    return [_from_json(raw) for raw in orjson.loads(data[1:])]


def _single_tokens(entries: Sequence[Entry]) -> list[int] | None:
    """Return the tokens of chunks that have one token each; None if an entry is something else."""
    tokens = []
    for entry in entries:
        if not isinstance(entry, Chunk) or len(entry.tokens) != 1 or entry.logprobs:
            return None
        tokens.append(entry.tokens[0])
    return tokens


def _to_json(entry: Entry) -> object:
    if isinstance(entry, RoundEnd):
        return {"end": [entry.prompt, entry.cached]}
    if isinstance(entry, RoundStart):
        return {"start": b64encode(encode_tokens(entry.prompt)).decode()}
    if isinstance(entry, CallStart):
        return {"call": entry.output_index}
    if isinstance(entry, ForItem):
        return {"item": entry.output_index, "delta": type(entry.delta).__name__, "fields": asdict(entry.delta)}
    if not entry.logprobs:
        return [list(entry.tokens)]
    return [list(entry.tokens), [[one.token, one.logprob, [list(pair) for pair in one.top]] for one in entry.logprobs]]


def _from_json(raw: Any) -> Entry:
    if isinstance(raw, dict):
        return _marker_from_json(raw)
    logprobs = raw[1] if len(raw) > 1 else ()
    return Chunk(tuple(raw[0]), tuple(Logprob(token, value, [(id, p) for id, p in top]) for token, value, top in logprobs))


def _marker_from_json(raw: dict[str, Any]) -> Entry:
    if "end" in raw:
        return RoundEnd(*raw["end"])
    if "call" in raw:
        return CallStart(raw["call"])
    if "start" in raw:
        return RoundStart(tuple(decode_tokens(b64decode(raw["start"]))))
    return ForItem(raw["item"], FAMILIES.item_deltas[raw["delta"]](**raw["fields"]))
