"""Prompt page of a response: the prompt of each round with special tokens marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import Direction, Item, Response
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log.rows.round_prompts import StoredRound, load_rounds
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.selection.prompt_span import Decode, decoder
from responses_app.web.response.selection.selected import selected_item

PAGE_TOKENS: Final = 20_000
# Special tokens of common tokenizers.
SPECIAL_TOKEN: Final = re.compile(
    r"(<\|[^|<>]{1,60}\|>|</?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad)>|\[/?INST\])"
)
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
        """Tokens that usage counts and the page does not show: those of images, but for one per image."""
        return max(0, (self.input_tokens or 0) - self.shown_tokens)


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/prompt, with the round `round`, counted from 1; without the parameter that of the selected item."""
    row = get_response(request, uid)
    pairs = sent_rounds(row, load_rounds(row.pk))
    rounds = [counts for _, counts in pairs]
    chosen = selected_item(row, request.GET.get("selected", ""))
    span = chosen.tokens if chosen else None
    index = min(max(number(request, "round", span.round if span else 1), 1), max(len(rounds), 1)) - 1
    tokens = pairs[index][0].prompt if pairs else []
    marked = range(span.first, span.last + 1) if span and span.round == index + 1 else range(0)
    after = max(number(request, "after", marked.start // PAGE_TOKENS * PAGE_TOKENS), 0)
    shown = tokens[after : after + PAGE_TOKENS]
    decode = decoder(row)
    return render_page(
        request,
        row,
        "response-prompt",
        "web/prompt.html",
        rounds=rounds,
        current=rounds[index] if rounds else None,
        missing_tokens=missing_tokens(row, rounds),
        after=after,
        following=after + PAGE_TOKENS if after + PAGE_TOKENS < len(tokens) else None,
        parts=list(_parts(shown, range(marked.start - after, marked.stop - after), decode)) if decode else [],
        is_decoded=decode is not None,
        token_ids=None if decode else " ".join(map(str, shown)),
        selected=chosen,
    )


def _parts(tokens: Sequence[int], marked: range, decode: Decode) -> Iterator[tuple[str, str]]:
    """Yield the texts of the tokens as `special`, `selected` or neither."""
    start, end = max(marked.start, 0), max(marked.stop, 0)
    for ids, kind in ((tokens[:start], ""), (tokens[start:end], "selected"), (tokens[end:], "")):
        # `split` with a group returns the special tokens at odd positions.
        for place, part in enumerate(SPECIAL_TOKEN.split(decode(list(ids)) if ids else "")):
            if part:
                yield visible(part), "special" if place % 2 else kind


def sent_rounds(row: Response, stored: Sequence[StoredRound]) -> list[tuple[StoredRound, PromptRound]]:
    """Return the rounds whose prompts were sent to the model, numbered from 1; if none was sent, the first prepared one."""
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
