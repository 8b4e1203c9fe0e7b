"""Cache page of a response: where its prompts stop sharing tokens with the prompts before, why, and how many tokens that cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse

from responses_app.access.permissions import visible_responses
from responses_app.models import Response
from responses_app.runs import manager
from responses_app.runs.cache_diagnostics.comparison import BLOCK_TOKENS, PrefixComparison, compare
from responses_app.runs.cache_diagnostics.stored import find_earlier, find_similar, load_record
from responses_app.runs.ids import is_id
from responses_app.store.log.rows.round_prompts import StoredRound, load_rounds, shared_length
from responses_app.web.private import private
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, render_page
from responses_app.web.response.selection.prompt_rounds import PromptRound, sent_rounds

# Tokens that the page shows before and behind the place where two prompts differ.
TOKENS_BEFORE: Final = 40
TOKENS_BEHIND: Final = 60


@dataclass(frozen=True, slots=True)
class Divergence:
    """Texts at the first token that differs: the common text before, and both continuations."""

    token: int
    common: str
    earlier: str
    later: str


@dataclass(frozen=True, slots=True)
class RoundSharing:
    """Round of the page in tokens: the prefix shared with the prompt before, None without one; the part in whole blocks."""

    round: PromptRound
    shared: int | None

    @property
    def reusable(self) -> int | None:
        """Shared tokens in whole blocks."""
        return None if self.shared is None else self.shared // BLOCK_TOKENS * BLOCK_TOKENS


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/cache. The parameter `with` names another response to compare with."""
    row = get_response(request, uid)
    named = request.GET.get("with", "").strip()
    visible_rows = visible_responses(request.user)
    earlier = visible_rows.filter(uid=named).first() if is_id(named) else None
    is_similar = False
    if not named:
        earlier = find_earlier(row, visible_rows)
        is_similar = earlier is None
        earlier = earlier or find_similar(row, visible_rows)
    rounds = sent_rounds(row, load_rounds(row.pk))
    comparison, divergence, previous = _compare(earlier, row, rounds) if earlier and rounds else (None, None, None)
    return render_page(
        request,
        row,
        "response-cache",
        "web/cache.html",
        named=named,
        earlier=earlier,
        is_similar=is_similar,
        comparison=comparison,
        divergence=divergence,
        rounds=_sharing(rounds, previous),
        block_tokens=BLOCK_TOKENS,
    )


def _compare(
    earlier_row: Response, row: Response, rounds: Sequence[tuple[StoredRound, PromptRound]]
) -> tuple[PrefixComparison, Divergence | None, Sequence[int]] | tuple[None, None, None]:
    """Compare with the earlier response; the result ends with its prompt. Nothing if a prompt or a request is not stored."""
    earlier, later = load_record(earlier_row), load_record(row, first=True)
    if earlier is None or later is None:
        return None, None, None
    served = manager.current().served.get(row.model)
    decode = None if served is None or served.dialect is None else served.dialect.token_text
    comparison = compare(earlier, later, rounds[0][1].cached_tokens, decode)
    return comparison, _divergence(earlier.prompt, later.prompt, comparison.shared, decode), earlier.prompt


def _divergence(
    earlier: Sequence[int], later: Sequence[int], shared: int, decode: Callable[[Sequence[int]], str] | None
) -> Divergence | None:
    """Return the texts where the prompts differ. None if the later prompt only continues the earlier, or without a tokenizer."""
    if decode is None or shared == len(earlier):
        return None
    start, end = max(0, shared - TOKENS_BEFORE), shared + TOKENS_BEHIND
    texts = (decode(part) for part in (later[start:shared], earlier[shared:end], later[shared:end]))
    return Divergence(shared, *(visible(text) for text in texts))


def _sharing(rounds: Sequence[tuple[StoredRound, PromptRound]], previous: Sequence[int] | None) -> list[RoundSharing]:
    lines, before = list[RoundSharing](), previous
    for stored, counts in rounds:
        lines.append(RoundSharing(counts, None if before is None else shared_length(before, stored.prompt)))
        before = stored.prompt
    return lines
