"""Prompt page of a response: the exact prompt of the model with special tokens marked."""

from __future__ import annotations

import re
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import Response, StoredRequest
from responses_app.runs import manager
from responses_app.store.log.token_ids import decode_tokens
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response, number, render_page

PAGE_TOKENS: Final = 20_000
# Special tokens of common tokenizers.
SPECIAL_TOKEN: Final = re.compile(
    r"(<\|[^|<>]{1,60}\|>|</?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|pad)>|\[/?INST\])"
)


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/prompt."""
    row = get_response(request, uid)
    stored = StoredRequest.objects.filter(response=row).first()
    tokens = decode_tokens(bytes(stored.prompt_tokens)) if stored is not None else []
    after = max(number(request, "after", 0), 0)
    shown = tokens[after : after + PAGE_TOKENS]
    text = _decode(row, shown)
    # `split` with a group returns the special tokens at odd positions.
    parts = [(visible(part), bool(index % 2)) for index, part in enumerate(SPECIAL_TOKEN.split(text or "")) if part]
    return render_page(
        request,
        row,
        "response-prompt",
        "web/prompt.html",
        is_stored=stored is not None,
        count=len(tokens),
        after=after,
        following=after + PAGE_TOKENS if after + PAGE_TOKENS < len(tokens) else None,
        parts=parts,
        is_decoded=text is not None,
        token_ids=None if text is not None else " ".join(map(str, shown)),
    )


def _decode(row: Response, tokens: list[int]) -> str | None:
    """Return the text of the tokens, None if the server does not serve the model and so lacks the tokenizer."""
    served = manager.current().served.get(row.model)
    if served is None or served.dialect is None:
        return None
    return served.dialect.token_text(tokens)
