"""`truncation: auto`: the oldest items are left out until the prompt fits (responses-api.md §3.5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from responses_app.dialects.base import Turn
from responses_app.dialects.text.budget import TooLong
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.runs.prepare import droppable_items
from responses_app.runs.prepare.prompt import PromptRenderer, RenderedPrompt, text_size

# How many bytes of an item's text make a token at first guess, and how many tokens an item has besides.
BYTES_OF_A_TOKEN = 4
FRAME_TOKENS = 4
# So many guesses, then the middle is taken.
GUESSES = 8


class Truncation:
    """A search for the fewest units of items, oldest first, without which a turn has at most `most` tokens; or else `limit` without all.

    A prompt that is too long is rendered up to `most` tokens only, so each step costs what is kept, not what was sent. The next number is
    guessed by the sizes of the units, and by what the last prompts have shown of these.
    """

    def __init__(self, prompts: PromptRenderer, turn: Turn, most: int, limit: int) -> None:
        self._prompts, self._most, self._limit = prompts, most, limit
        # What is rendered for one step need not be again for the next.
        self._turn = replace(turn, memo=turn.memo or TokenCache())
        self._units = droppable_items.droppable(turn.items)
        sizes = (sum(size(turn.items[place]) for place in unit) for unit in self._units)
        self._sizes = [0, *accumulate(sizes)]
        # Tokens per estimated token.
        self._rate = 1.0

    async def search(self) -> tuple[Turn, RenderedPrompt]:
        """The turn without these units, and its prompt. Raises TooLong, and what `Prompts` raises."""
        last = len(self._units)
        turn, prompt = await self._without(last, self._limit)
        if not prompt.fits(self._most):
            return turn, prompt
        least, too_few, enough, tries = prompt.length, 0, last, 0
        while enough - too_few > 1:
            tries += 1
            count = self._guess(too_few, enough, prompt.length) if tries <= GUESSES else (too_few + enough) // 2
            found = await self._fitting(count)
            if found is None:
                too_few = count
                self._learn(last, count, self._most - least, is_lower_bound=True)
            else:
                (turn, prompt), enough = found, count
                self._learn(last, count, prompt.length - least)
        return turn, prompt

    async def _fitting(self, count: int) -> tuple[Turn, RenderedPrompt] | None:
        """The turn without so many units, None if that is too long."""
        try:
            turn, prompt = await self._without(count, self._most)
        except TooLong:
            return None
        return (turn, prompt) if prompt.fits(self._most) else None

    def _guess(self, too_few: int, enough: int, length: int) -> int:
        """The number of units to leave out next, between the two; without `enough` units the prompt has `length` tokens."""
        room = (self._most - length) / self._rate
        count = bisect_left(self._sizes, self._sizes[enough] - room, too_few + 1, enough)
        return min(count, enough - 1)

    def _learn(self, last: int, count: int, tokens: int, *, is_lower_bound: bool = False) -> None:
        """Compare the tokens of the units behind `count` with their estimated sizes."""
        estimated = self._sizes[last] - self._sizes[count]
        if estimated > 0 and tokens > 0:
            rate = tokens / estimated
            self._rate = max(rate * 1.02, self._rate * 1.2) if is_lower_bound else rate

    async def _without(self, count: int, most: int) -> tuple[Turn, RenderedPrompt]:
        gone = {place for unit in self._units[:count] for place in unit}
        items = [item for place, item in enumerate(self._turn.items) if place not in gone]
        shorter = replace(self._turn, items=items)
        return shorter, await self._prompts.of(shorter, most)


def size(item: Mapping[str, Any]) -> int:
    """About how many tokens an item has."""
    return FRAME_TOKENS + text_size(item) // BYTES_OF_A_TOKEN
