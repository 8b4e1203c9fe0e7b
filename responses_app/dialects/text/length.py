"""A lower bound on the number of tokens of a text, computed from its bytes without a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

# Bytes are counted in groups: those whose longest token has up to so many bytes.
_STEPS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 48, 64, 96, 128, 256, 1024)
_CHUNK = 1 << 20


class Count(Protocol):
    """Receives a number of tokens that the text has at least. It may raise an exception to end the counting."""

    def __call__(self, tokens: int) -> None: ...


class LowerBound:
    """For a tokenizer whose tokens are sequences of bytes, all of which it keeps.

    With L(b) as the length of the longest token that contains byte b, a token t has the sum of 1/L(b) over its bytes at most 1,
    as L(b) is at least len(t). So a text has at least the sum of 1/L(b) over its bytes as tokens.
    """

    def __init__(self, tokens: Iterable[bytes]) -> None:
        longest = [1] * 256
        for token in tokens:
            for byte in set(token):
                longest[byte] = max(longest[byte], len(token))
        groups: dict[int, list[int]] = {}
        for byte, length in enumerate(longest):
            groups.setdefault(next((step for step in _STEPS if step >= length), length), []).append(byte)
        self._groups = [(length, bytes(group)) for length, group in sorted(groups.items())]
        self.longest = max(longest)

    def count(self, text: str, report: Count | None = None) -> int:
        """The number of tokens that the text has at least; `report` is told it after each chunk."""
        total = 0.0
        for at in range(0, len(text), _CHUNK):
            total += self._count(text[at : at + _CHUNK].encode("utf-8", "surrogatepass"))
            if report is not None:
                report(int(total))
        return int(total)

    def _count(self, data: bytes) -> float:
        total, left = 0.0, len(data)
        for length, group in self._groups:
            data = data.translate(None, group)
            total += (left - len(data)) / length
            left = len(data)
            if not left:
                break
        return total
