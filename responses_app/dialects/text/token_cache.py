"""Token cache: token ids of prompt pieces by text, reused for the next prompt of the same conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

CachedTokens: TypeAlias = Mapping[str, Sequence[int]]

EMPTY: Final[CachedTokens] = {}


class TokenCache:
    """Token cache of a prompt. `past` are the pieces of an earlier prompt, `used` the pieces of the current prompt.

    A dialect caches only pieces whose tokens do not depend on the surrounding text, so the prompt is the same without the
    cache.
    """

    def __init__(self, past: CachedTokens = EMPTY) -> None:
        self.used: dict[str, Sequence[int]] = {}
        self._past = past

    def tokens(self, text: str, make: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Return the tokens of a piece, computed by `make` if not cached."""
        tokens = self.used.get(text) or self._past.get(text)
        if tokens is None:
            tokens = make()
        self.used[text] = tokens
        return tokens

    @property
    def size(self) -> int:
        """Approximate memory use of the cached pieces, in bytes."""
        return sum(len(text) + 8 * len(tokens) for text, tokens in self.used.items())
