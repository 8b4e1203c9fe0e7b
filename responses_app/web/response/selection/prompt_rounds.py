"""Rounds of a response whose prompts were sent to the model, with the token counts of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from responses_app.models import Direction, Item, Response
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log.rows.round_prompts import StoredRound

# Items whose results the server adds: behind these a further round may follow.
SERVER_TOOL_ITEMS: Final = frozenset(family.type for family in FAMILIES.values() if family.results)


@dataclass(frozen=True, slots=True)
class PromptRound:
    """Round of the page. `input_tokens` is the number that usage counts, None if unknown; `cached_tokens` are among these.

    A round without `was_sent` only ran tools. With images `shown_tokens` is smaller than `input_tokens`: an image is one token there.
    """

    number: int
    shown_tokens: int
    input_tokens: int | None
    cached_tokens: int | None
    was_sent: bool = True

    @property
    def image_tokens(self) -> int:
        """Tokens of images that usage counts and the page does not show: all but one per image."""
        return max(0, (self.input_tokens or 0) - self.shown_tokens)


def sent_rounds(row: Response, stored: Sequence[StoredRound]) -> list[tuple[StoredRound, PromptRound]]:
    """Return the rounds whose prompts were sent to the model, numbered from 1; if none was sent, the first prepared prompt."""
    pairs = list(zip(stored, counted_rounds(row, stored), strict=True))
    sent = [pair for pair in pairs if pair[1].was_sent] or pairs[:1]
    return [(prompt, replace(counts, number=place)) for place, (prompt, counts) in enumerate(sent, 1)]


def counted_rounds(row: Response, stored: Sequence[StoredRound]) -> list[PromptRound]:
    """Return the rounds with their token counts. The counts of the last round are the rest of the usage, if all rounds are stored."""
    rounds = [
        PromptRound(place, len(one.prompt), one.input_tokens, one.cached_tokens, one.input_tokens != 0)
        for place, one in enumerate(stored, 1)
    ]
    if not rounds or row.input_tokens is None or (len(rounds) == 1 and _may_have_more_rounds(row)):
        return rounds
    last = rounds[-1]
    if last.input_tokens is None:
        left = row.input_tokens - sum(one.input_tokens or 0 for one in rounds)
        cached = (row.cached_tokens or 0) - sum(one.cached_tokens or 0 for one in rounds)
        rounds[-1] = PromptRound(last.number, last.shown_tokens, left, cached, left > 0)
    return rounds


def missing_tokens(row: Response, rounds: Sequence[PromptRound]) -> int:
    """Return how many input tokens of the response belong to rounds that are not stored."""
    if row.input_tokens is None or not rounds:
        return 0
    known = sum(one.shown_tokens if one.input_tokens is None else one.input_tokens for one in rounds)
    return max(0, row.input_tokens - known)


def _may_have_more_rounds(row: Response) -> bool:
    """Return whether the output has calls or listings of server tools, behind which there may be a round."""
    output = Item.objects.filter(response=row, direction=Direction.OUTPUT)
    return output.filter(type__in=SERVER_TOOL_ITEMS).exists()
