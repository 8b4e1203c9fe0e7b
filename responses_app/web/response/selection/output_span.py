"""Tokens of an output item behind the prompt of the round, for an item that no later prompt has."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.models import Response
from responses_app.store.log.event_index import EventHeader
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.web.response.selection.prompt_rounds import sent_rounds
from responses_app.web.response.selection.prompt_span import PromptSpan
from responses_app.web.response.timelines.event_groups import COPIES
from responses_app.web.response.timelines.event_kinds import DELTA, GENERATION_KINDS, event_kind
from responses_app.web.response.timelines.item_spans import ItemSpan


def output_span(
    row: Response, span: ItemSpan, written: Sequence[ItemSpan], headers: Sequence[EventHeader], round_number: int
) -> PromptSpan | None:
    """Return the tokens of `span`, of the items `written` in the round, in order. None without the prompt or tokens of the item."""
    rounds = [counts for _, counts in sent_rounds(row, load_rounds(row.pk))]
    if round_number > len(rounds) or (start := rounds[round_number - 1].input_tokens) is None:
        return None
    exact = _counts_of_usage(row, written) if len(rounds) == 1 else None
    counts = exact or [_deltas(one, headers) for one in written]
    place = next(index for index, one in enumerate(written) if one.uid == span.uid)
    first = start + sum(counts[:place])
    if not counts[place]:
        return None
    return PromptSpan(round_number, first, first + counts[place] - 1, is_output=True, is_exact=exact is not None)


def _counts_of_usage(row: Response, written: Sequence[ItemSpan]) -> list[int] | None:
    """Return the tokens of each item as usage counts these. None if these belong to more items."""
    if row.output_tokens is None:
        return None
    reasoning = row.reasoning_tokens or 0
    match [str(one.item.get("type")) for one in written]:
        case ["reasoning"]:
            return [row.output_tokens]
        case ["reasoning", other] if other != "reasoning":
            return [reasoning, row.output_tokens - reasoning]
        case [_] if not reasoning:
            return [row.output_tokens]
    return None


def _deltas(span: ItemSpan, headers: Sequence[EventHeader]) -> int:
    """Return the number of deltas of an item that the model wrote, without copies."""
    return sum(
        header.type.endswith(DELTA) and header.type not in COPIES and event_kind(header.type) in GENERATION_KINDS
        for header in headers
        if span.first <= header.number <= span.last
    )
