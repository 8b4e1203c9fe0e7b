"""Scripted engine of another process, whose answer pauses behind its beginning until a test lets it continue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.api.case import tokens

WORDS = [f" word{number}" for number in range(60)]
# The word at which a test interrupts the answer of WORDS: the answer pauses some words later.
CUT_AT, PAUSES_AT = " word7", 20
START = "<|channel|>final<|message|>"


class HeldScript:
    """Script whose model is called `held`; `url` is that of the engine. Answers pause until `release`, and again after `hold`."""

    def __init__(self, folder: Path, beginning: Sequence[str], end: Sequence[str]) -> None:
        self._gate = folder / "held.released"
        before, after = ([{"tokens": tokens(text)} for text in texts] for texts in (beginning, end))
        chunks: list[dict[str, Any]] = [*before, {"until": str(self._gate)}, *after]
        path = folder / "held.jsonl"
        path.write_text(json.dumps({"chunks": chunks}) + "\n")
        self.url = f"script://{path}?loop=1"

    def hold(self) -> None:
        self._gate.unlink(missing_ok=True)

    def release(self) -> None:
        self._gate.touch()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let answers end within the context."""
        self.release()
        try:
            yield
        finally:
            self.hold()


def held_words(folder: Path) -> HeldScript:
    """Write a script whose answer is "Once" and WORDS."""
    return HeldScript(folder, [f"{START}Once", *WORDS[:PAUSES_AT]], [*WORDS[PAUSES_AT:], "<|return|>"])


def held_hello(folder: Path) -> HeldScript:
    """Write a script whose answer is "Hello there!"."""
    return HeldScript(folder, [f"{START}Hello"], [" there!<|return|>"])
