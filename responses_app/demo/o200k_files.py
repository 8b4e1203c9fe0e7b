"""The tokenizer.json of gpt-oss, rebuilt without a network from the vocabulary inside the harmony library."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from responses_app.demo import o200k

Json = dict[str, Any]

# The published digest of o200k_base.tiktoken.
DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
SIZE = 201_088
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SPLIT = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class WrongVocabulary(Exception):
    """The harmony library carries another vocabulary than the one that the weights were made for."""


def checked_pieces() -> list[bytes]:
    """Return the bytes of every ordinary token. Raises WrongVocabulary if they are not those of o200k_base."""
    pieces = o200k.pieces()
    lines = b"".join(base64.b64encode(t) + b" " + str(i).encode() + b"\n" for i, t in enumerate(pieces))
    if hashlib.sha256(lines).hexdigest() != DIGEST:
        raise WrongVocabulary("the vocabulary in the harmony library is not o200k_base")
    return pieces


def _alphabet() -> dict[int, str]:
    """GPT-2's printable stand-in for every byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


def _merges(pieces: list[bytes]) -> list[tuple[int, int]]:
    """Every way in which a token can be made of two earlier ones, as their ids, in the order of the tokens."""
    find = {t: i for i, t in enumerate(pieces)}.get
    out: list[tuple[int, int]] = []
    for token in pieces:
        cuts = range(1, len(token))
        ways = [(a, b) for i in cuts if (a := find(token[:i])) is not None and (b := find(token[i:])) is not None]
        out += sorted(ways)
    return out


def special_names() -> list[str]:
    """List the special tokens in the order of their ids."""
    decode = o200k.encoding()._inner.decode_bytes
    return [bytes(decode([i])).decode() for i in range(o200k.ORDINARY, SIZE)]


def tokenizer_json() -> str:
    """Build the `tokenizer.json` of the vocabulary."""
    pieces = checked_pieces()
    table = str.maketrans({chr(b): c for b, c in _alphabet().items()})
    written = [piece.decode("latin-1").translate(table) for piece in pieces]
    model: Json = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": True,
        "vocab": {piece: i for i, piece in enumerate(written)},
        "merges": [[written[a], written[b]] for a, b in _merges(pieces)],
    }
    added = [
        {
            "id": o200k.ORDINARY + i,
            "content": name,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, name in enumerate(special_names())
    ]
    byte_level: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split: Json = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    whole: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level | {"add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": model,
    }
    return json.dumps(whole, ensure_ascii=False)
