"""Prompt page of a response: the prompt of each round with special tokens marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from django.http import HttpRequest, HttpResponse

from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.web.private import private
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.selection.prompt_rounds import missing_tokens, sent_rounds
from responses_app.web.response.selection.prompt_span import Decode, decoder
from responses_app.web.response.selection.selected import selected_item

PAGE_TOKENS: Final = 20_000
# Special tokens of common tokenizers.
SPECIAL_TOKEN: Final = re.compile(
    r"(<\|[^|<>]{1,60}\|>|</?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad)>|\[/?INST\])"
)


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/prompt, with the round `round`, counted from 1; without the parameter that of the selected item."""
    row = get_response(request, uid)
    pairs = sent_rounds(row, load_rounds(row.pk))
    rounds = [counts for _, counts in pairs]
    chosen = selected_item(row, request.GET.get("selected", ""))
    span = chosen.tokens if chosen and chosen.tokens and not chosen.tokens.is_output else None
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
