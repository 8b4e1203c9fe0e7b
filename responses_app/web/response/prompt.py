"""The prompt view of a response: the very text that the model saw, its special tokens included."""

from __future__ import annotations

import re
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import Response, StoredRequest
from responses_app.runs import manager
from responses_app.store.log.group_commit import unpacked
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, number, render_page

# Tokens of a page.
SHOWN: Final = 20_000
# How the special tokens of the usual vocabularies are written.
SPECIAL: Final = re.compile(
    r"(<\|[^|<>]{1,60}\|>|</?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad)>|\[/?INST\])"
)


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/prompt."""
    row = get_response(request, uid)
    kept = StoredRequest.objects.filter(response=row).first()
    tokens = unpacked(bytes(kept.prompt_tokens)) if kept is not None else []
    after = max(number(request, "after", 0), 0)
    shown = tokens[after : after + SHOWN]
    text = _spelled(row, shown)
    # Every other piece is a special token: what `split` keeps of its pattern.
    pieces = [(visible(piece), bool(place % 2)) for place, piece in enumerate(SPECIAL.split(text or "")) if piece]
    return render_page(
        request,
        row,
        "response-prompt",
        "web/prompt.html",
        kept=kept,
        count=len(tokens),
        after=after,
        following=after + SHOWN if after + SHOWN < len(tokens) else None,
        pieces=pieces,
        spelled=text is not None,
        numbers=None if text is not None else " ".join(map(str, shown)),
    )


def _spelled(row: Response, tokens: list[int]) -> str | None:
    """The text of the tokens; None if the model is not served here any more, as its vocabulary is its own."""
    served = manager.current().served.get(row.model)
    if served is None or served.dialect is None:
        return None
    return served.dialect.token_text(tokens)
