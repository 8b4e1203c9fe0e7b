"""Two responses side by side: what differs in what was asked, and the answers line by line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import Direction, Item, Response
from responses_app.store.log import reader
from responses_app.web.render.sanitize import visible
from responses_app.web.response.detail import get_response
from responses_app.web.responses.rows import ResponseStats

FIELDS: Final = (
    "model",
    "status",
    "instructions",
    "temperature",
    "top_p",
    "reasoning",
    "text",
    "tool_choice",
    "tools",
    "truncation",
)
LONGEST: Final = 40_000
CELL: Final = 600
# Characters of an unknown id that are repeated.
SHOWN: Final = 128


@dataclass(frozen=True, slots=True)
class ComparedResponse:
    """One of the two."""

    row: Response
    figures: ResponseStats
    snapshot: dict[str, Any]
    asked: str
    answered: str


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /responses/compare?a=ID&b=ID. An id that names no response keeps the form, with status 404."""
    given = {name: request.GET.get(name, "").strip() for name in ("a", "b")}
    sides = {name: _found(request, uid) for name, uid in given.items() if uid}
    unknown = [(name.upper(), given[name][:SHOWN]) for name, side in sides.items() if side is None]
    context: dict[str, Any] = {"section": "responses", "given": given, "unknown": unknown, **sides}
    a, b = sides.get("a"), sides.get("b")
    if a is not None and b is not None:
        context["fields"] = [(name, _cell(a, name), _cell(b, name)) for name in FIELDS]
        context["differences"] = (("Input", _lines(a.asked, b.asked)), ("Output", _lines(a.answered, b.answered)))
    return render(request, "web/compare.html", context, status=404 if unknown else 200)


def _found(request: HttpRequest, uid: str) -> ComparedResponse | None:
    try:
        return _side(get_response(request, uid))
    except Http404:
        return None


def _side(row: Response) -> ComparedResponse:
    end = reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").get()
    data = reader.terminal_snapshot(end)
    return ComparedResponse(
        row, ResponseStats(row), json.loads(data) if data else {}, _said(row, Direction.INPUT), _said(row, Direction.OUTPUT)
    )


def _said(row: Response, direction: Direction) -> str:
    bodies = Item.objects.filter(response=row, direction=direction).order_by("pk").values_list("body", flat=True)
    return "\n".join("\n".join(_words(json.loads(body))) for body in bodies[:200])[:LONGEST]


def _words(item: dict[str, Any]) -> Sequence[str]:
    kind = item.get("type")
    content = item.get("content")
    if kind in ("message", "reasoning") and isinstance(content, list):
        texts = [str(part.get("text", part.get("refusal", part.get("type")))) for part in content if isinstance(part, dict)]
        return [f"[{item.get('role', kind)}]", *texts]
    rest = {key: value for key, value in item.items() if key not in ("id", "call_id", "status")}
    return [json.dumps(rest, ensure_ascii=False)]


def _cell(side: ComparedResponse, name: str) -> str:
    value = side.snapshot.get(name, getattr(side.row, name, ""))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text[:CELL])


def _lines(a: str, b: str) -> list[tuple[str, str, str]]:
    """Lines side by side: whether they are the same, and both."""
    left, right = visible(a).splitlines(), visible(b).splitlines()
    found = []
    for what, a1, a2, b1, b2 in difflib.SequenceMatcher(None, left, right, autojunk=True).get_opcodes():
        size = max(a2 - a1, b2 - b1)
        pairs = zip(left[a1:a2] + [""] * (size - (a2 - a1)), right[b1:b2] + [""] * (size - (b2 - b1)), strict=True)
        found += [("same" if what == "equal" else "other", one, two) for one, two in pairs]
    return found
