"""Recording with a long answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openai_harmony import load_harmony_encoding

WORDS = " the quick brown fox jumps over the lazy dog and then it sleeps for a very long time"


def write_tape(folder: Path, tokens: int, rate: float | None) -> Path:
    """Write a recording with an answer of `tokens` tokens, `rate` tokens per second; without `rate`, without delays."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    words = encoding.encode(WORDS)
    ids = [
        *encoding.encode("<|channel|>final<|message|>", allowed_special="all"),
        *(words * (tokens // len(words) + 1))[:tokens],
    ]
    chunks: list[dict[str, Any]] = []
    for token in ids:
        chunks += [{"tokens": [token]}] if rate is None else [{"tokens": [token]}, {"delay": 1 / rate}]
    chunks.append({"tokens": encoding.encode("<|return|>", allowed_special="all")})
    tape = folder / "tape.jsonl"
    tape.write_text(json.dumps({"chunks": chunks}) + "\n")
    return tape
