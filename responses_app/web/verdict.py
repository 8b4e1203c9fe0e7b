"""The check view of a response: what the public judge says about this very stream."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.grammar.check import Check
from responses_app.grammar.errors import GrammarError
from responses_app.grammar.fold import fold
from responses_app.models import Detail
from responses_app.store.replay import TERMINAL
from responses_app.web.found import find, page
from responses_app.web.plain import plain
from responses_app.web.reading import events

MOST: Final = 100


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/check."""
    row = find(request, uid)
    if row.detail == Detail.OUTLINE:
        return page(request, row, "response-check", "web/verdict.html", outline=True)
    check = Check()
    told = list(events(row.pk))
    broken = [violation for event in told for violation in check.feed(event)]
    over = bool(told) and told[-1]["type"] in TERMINAL
    if over:
        broken += check.close()
    return page(
        request,
        row,
        "response-check",
        "web/verdict.html",
        count=len(told),
        over=over,
        broken=[(one.rule, one.number, plain(one.message[:500])) for one in broken[:MOST]],
        total=len(broken),
        folds=_folds(told) if over else None,
    )


def _folds(told: list[dict[str, object]]) -> bool:
    """Whether the events, folded, are the snapshot that the last one carries."""
    try:
        return fold(told) == told[-1]["response"]
    except GrammarError:
        return False
