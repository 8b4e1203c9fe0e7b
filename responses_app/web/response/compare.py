"""Compare page: two responses side by side, parameters per row and texts line by line."""

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
from responses_app.web.render.sanitize import hide_url_queries, visible
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
# Limits in characters: the compared text, a table cell, and an unknown id in the error message.
MAX_TEXT_CHARS: Final = 40_000
MAX_CELL_CHARS: Final = 600
MAX_ID_CHARS: Final = 128
# Items of a response whose text is compared.
MAX_ITEMS: Final = 200


@dataclass(frozen=True, slots=True)
class ComparedResponse:
    """Compared response with the texts of input and output."""

    row: Response
    stats: ResponseStats
    snapshot: dict[str, Any]
    input_text: str
    output_text: str


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Render GET /responses/compare?a=ID&b=ID. An unknown id shows the form again with status 404."""
    requested_ids = {name: request.GET.get(name, "").strip() for name in ("a", "b")}
    sides = {name: _find(request, uid) for name, uid in requested_ids.items() if uid}
    unknown = [(name.upper(), requested_ids[name][:MAX_ID_CHARS]) for name, side in sides.items() if side is None]
    context: dict[str, Any] = {"section": "responses", "given": requested_ids, "unknown": unknown, **sides}
    a, b = sides.get("a"), sides.get("b")
    if a is not None and b is not None:
        context["fields"] = [(name, _cell(a, name), _cell(b, name)) for name in FIELDS]
        context["differences"] = (
            ("Input", _side_by_side(a.input_text, b.input_text)),
            ("Output", _side_by_side(a.output_text, b.output_text)),
        )
    return render(request, "web/compare.html", context, status=404 if unknown else 200)


def _find(request: HttpRequest, uid: str) -> ComparedResponse | None:
    try:
        return _load(get_response(request, uid))
    except Http404:
        return None


def _load(row: Response) -> ComparedResponse:
    end = reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").get()
    data = reader.terminal_snapshot(end)
    return ComparedResponse(
        row, ResponseStats(row), json.loads(data) if data else {}, _text(row, Direction.INPUT), _text(row, Direction.OUTPUT)
    )


def _text(row: Response, direction: Direction) -> str:
    bodies = Item.objects.filter(response=row, direction=direction).order_by("pk").values_list("body", flat=True)
    return "\n".join("\n".join(_item_lines(json.loads(body))) for body in bodies[:MAX_ITEMS])[:MAX_TEXT_CHARS]


def _item_lines(item: dict[str, Any]) -> Sequence[str]:
    kind = item.get("type")
    content = item.get("content")
    if kind in ("message", "reasoning") and isinstance(content, list):
        texts = [str(part.get("text", part.get("refusal", part.get("type")))) for part in content if isinstance(part, dict)]
        return [f"[{item.get('role', kind)}]", *texts]
    shown_fields = {key: value for key, value in item.items() if key not in ("id", "call_id", "status")}
    return [json.dumps(shown_fields, ensure_ascii=False)]


def _cell(side: ComparedResponse, name: str) -> str:
    value = side.snapshot.get(name, getattr(side.row, name, ""))
    text = value if isinstance(value, str) else hide_url_queries(json.dumps(value, ensure_ascii=False))
    return visible(text[:MAX_CELL_CHARS])


def _side_by_side(a: str, b: str) -> list[tuple[str, str, str]]:
    """Align the lines of two texts. Return `same` or `other`, the line of `a` and the line of `b`."""
    left, right = visible(a).splitlines(), visible(b).splitlines()
    lines = []
    for tag, a1, a2, b1, b2 in difflib.SequenceMatcher(None, left, right, autojunk=True).get_opcodes():
        size = max(a2 - a1, b2 - b1)
        pairs = zip(left[a1:a2] + [""] * (size - (a2 - a1)), right[b1:b2] + [""] * (size - (b2 - b1)), strict=True)
        lines += [("same" if tag == "equal" else "other", line_a, line_b) for line_a, line_b in pairs]
    return lines
