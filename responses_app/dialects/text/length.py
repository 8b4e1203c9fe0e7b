"""Lower bound on the token count of a text, computed from the bytes without a tokenizer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

# Bytes are counted in groups by the length in bytes of their longest token, rounded up to these steps.
_STEPS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 48, 64, 96, 128, 256, 1024)
_CHUNK = 1 << 20


class LowerBound:
    """Lower bound for tokenizers of byte sequences which preserve all bytes.

    With L(b) as the length of the longest token with byte b, the sum of 1/L(b) over the bytes of a token t is at most 1,
    because L(b) is at least len(t). So the sum of 1/L(b) over the bytes of a text is at most its number of tokens.
    """

    def __init__(self, tokens: Iterable[bytes]) -> None:
        by_length = defaultdict[int, list[bytes]](list)
        for token in tokens:
            by_length[len(token)].append(token)
        longest = [1] * 256
        # By length, as a loop over the bytes of each of 200,000 tokens would take a third of a second.
        for length in sorted(by_length):
            for byte in set(b"".join(by_length[length])):
                longest[byte] = length
        groups: dict[int, list[int]] = {}
        for byte, length in enumerate(longest):
            groups.setdefault(next((step for step in _STEPS if step >= length), length), []).append(byte)
        self._groups = [(length, bytes(group)) for length, group in sorted(groups.items())]
        self.longest = max(longest)

    def count(self, text: str, report: Callable[[int], None] | None = None) -> int:
        """Return a lower bound of the token count; `report` receives the bound after each chunk, and may raise to end the counting."""
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
