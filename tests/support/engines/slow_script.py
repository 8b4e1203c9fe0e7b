"""Scripted engine that takes three seconds for an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.api.case import tokens

WORDS = [f" word{number}" for number in range(60)]
PAUSE_S = 0.05


def slow_engine(folder: Path) -> str:
    """Write the script of the engine, whose model is called `slow`, and return its URL. The answer is "Once" and WORDS."""
    chunks: list[dict[str, Any]] = [{"tokens": tokens("<|channel|>final<|message|>Once")}]
    for word in WORDS:
        chunks += [{"delay": PAUSE_S}, {"tokens": tokens(word)}]
    path = folder / "slow.jsonl"
    path.write_text(json.dumps({"chunks": [*chunks, {"tokens": tokens("<|return|>")}]}) + "\n")
    return f"script://{path}?loop=1"
