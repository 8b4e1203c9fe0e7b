"""What was rendered before and need not be again: the token ids of pieces of a prompt, by the text of each piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

Known: TypeAlias = Mapping[str, Sequence[int]]

NOTHING: Final[Known] = {}


class TokenCache:
    """For one prompt. `past` is known from an earlier one, `used` is all that this one has: what the next one can know.

    A dialect asks only for pieces whose tokens do not depend on what stands around them, so the prompt is the same without it.
    """

    def __init__(self, past: Known = NOTHING) -> None:
        self.used: dict[str, Sequence[int]] = {}
        self._past = past

    def tokens(self, text: str, make: Callable[[], Sequence[int]]) -> Sequence[int]:
        """The tokens of a piece; they are made if they are not known."""
        found = self.used.get(text) or self._past.get(text)
        if found is None:
            found = make()
        self.used[text] = found
        return found

    @property
    def size(self) -> int:
        """Roughly how many bytes it takes to remember what was used."""
        return sum(len(text) + 8 * len(tokens) for text, tokens in self.used.items())
