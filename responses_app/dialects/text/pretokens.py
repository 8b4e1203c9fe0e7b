"""Pre-tokenizer analysis: checks whether a tokenizer preserves all bytes, and finds safe cuts for texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

from responses_app.dialects.text.slices import CUT

_TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_PUNCTUATION = r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# Patterns for which a cut is safe, see slices.py.
KNOWN_PATTERNS = frozenset(
    {
        # GPT-2
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        # Llama 3 and cl100k; Qwen 2 and 3
        rf"{_ENDINGS}|{_WORD}\p{{L}}+|\p{{N}}{{1,3}}{_PUNCTUATION}{_TAIL}",
        rf"{_ENDINGS}|{_WORD}\p{{L}}+|\p{{N}}{_PUNCTUATION}{_TAIL}",
        # o200k
        rf"{_WORD}{_UPPER}*{_LOWER}+{_ENDINGS}?|{_WORD}{_UPPER}+{_LOWER}*{_ENDINGS}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{_TAIL}",
        # demo-chat
        r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+| (?=\S)|\s+",
    }
)


def composes(tokenizer: Tokenizer) -> bool:
    """Return True if the tokenizer normalizes text to NFC."""
    return _types(_parts(tokenizer.normalizer, "normalizers")) == ["NFC"]


def preserves_all_bytes(tokenizer: Tokenizer) -> bool:
    """Return True if each byte of a text belongs to a single token, for a byte-level tokenizer.

    With `composes` this holds for the text after NFC.
    """
    splits = _parts(tokenizer.pre_tokenizer, "pretokenizers")
    return (
        _is_plain_bpe(tokenizer)
        and _types(_parts(tokenizer.normalizer, "normalizers")) in ([], ["NFC"])
        and all(part["type"] in ("Split", "ByteLevel", "Digits") and part.get("behavior") != "Removed" for part in splits)
        and not any(part.get("add_prefix_space") for part in splits)
        and not any(part.lstrip or part.rstrip for part in tokenizer.get_added_tokens_decoder().values())
    )


def safe_cut(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """Return a pattern of positions where a cut does not change the tokens (slices.py); None if unknown."""
    splits = _parts(tokenizer.pre_tokenizer, "pretokenizers")
    added = tokenizer.get_added_tokens_decoder().values()
    if (
        _is_plain_bpe(tokenizer)
        and _types(_parts(tokenizer.normalizer, "normalizers")) in ([], ["NFC"])
        and _is_known(splits)
        and not any(part.lstrip or part.rstrip or part.single_word or CUT.search(part.content) for part in added)
    ):
        return CUT
    return None


def _is_plain_bpe(tokenizer: Tokenizer) -> bool:
    model = tokenizer.model
    return (
        type(model).__name__ == "BPE"
        and model.dropout is None
        and not model.continuing_subword_prefix
        and not model.end_of_word_suffix
        and tokenizer.truncation is None
        and tokenizer.padding is None
    )


def _is_known(splits: Sequence[dict[str, Any]]) -> bool:
    """Return True if the steps are byte-level encoding, after no more than a single known split pattern."""
    if not splits or splits[-1]["type"] != "ByteLevel" or splits[-1].get("add_prefix_space"):
        return False
    if len(splits) == 1:
        # ByteLevel alone splits as GPT-2 does.
        return bool(splits[0].get("use_regex", True))
    first = splits[0]
    return (
        len(splits) == 2
        and first["type"] == "Split"
        and first["behavior"] == "Isolated"
        and not first["invert"]
        and first["pattern"].get("Regex") in KNOWN_PATTERNS
    )


def _parts(step: Any, name: str) -> list[dict[str, Any]]:
    """Return the steps of a normalizer or a pre-tokenizer; a single step of type `unknown` if unreadable."""
    if step is None:
        return []
    try:
        state: dict[str, Any] = json.loads(step.__getstate__())
    except Exception:  # A step written in Python has no state.
        return [{"type": "unknown"}]
    return list(state[name]) if state.get("type") == "Sequence" else [state]


def _types(parts: Sequence[dict[str, Any]]) -> list[str]:
    return [str(part["type"]) for part in parts]
