"""What all pages of one response share: finding it for whoever asks, its figures, its tabs."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.models import Response
from responses_app.runs.ids import could_be
from responses_app.store import replay
from responses_app.web.numbers import read_number
from responses_app.web.person import seen
from responses_app.web.rows import Figures

TABS = (
    ("response", "Conversation"),
    ("response-events", "Events"),
    ("response-wire", "Raw"),
    ("response-prompt", "Prompt"),
    ("response-chain", "Chain"),
    ("response-check", "Validation"),
)
MISSING = "No response with this ID in your projects. It may have been deleted."


def find(request: HttpRequest, uid: str) -> Response:
    """The response, if the person may see it. Raises Http404."""
    row = seen(request.user).select_related("key", "conversation").filter(uid=uid).first() if could_be(uid) else None
    if row is None:
        raise Http404(MISSING)
    return row


def page(request: HttpRequest, row: Response, tab: str, template: str, **context: Any) -> HttpResponse:
    """A page of the response with its head. `tab` is the name of its address."""
    common = {
        "section": "responses",
        "row": row,
        "figures": Figures(row),
        "tabs": TABS,
        "tab": tab,
        "tab_title": dict(TABS).get(tab, "Delete"),
        "running": row.ended_at is None,
        "end": replay.reach(row.pk),
    }
    return render(request, template, {**common, **context})


def number(request: HttpRequest, name: str, default: int = -1) -> int:
    """A number of the query, or the default."""
    found = read_number(request.GET.get(name, ""), 2**31 - 1)
    return default if found is None else found
