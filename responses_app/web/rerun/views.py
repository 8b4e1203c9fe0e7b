"""Views of the page that edits and reruns a request, and of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from responses_app.access import model_access
from responses_app.access.permissions import has_role
from responses_app.models import ApiKey, Response, Role
from responses_app.runs import manager
from responses_app.web.private import private
from responses_app.web.render.item_blocks import TEMPLATES
from responses_app.web.rerun import editors
from responses_app.web.rerun.columns import MAX_COLUMNS, Column, load_columns, mode_of, original_column, run_column
from responses_app.web.rerun.turns import load_turn
from responses_app.web.response.detail import get_response, number
from responses_app.web.responses.rows import question_of

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/rerun. `column` names the columns beside the original, `tools` how tools are answered.

    A viewer reads the columns, without the request to edit.
    """
    row = get_response(request, uid)
    turn = load_turn(row)
    columns, base = load_columns(request, row, turn)
    compares = any(column.is_compared for column in columns)
    may_run = has_role(request.user, row.project, Role.MEMBER)
    context = {
        "section": "responses",
        "row": row,
        "question": question_of(row),
        "columns": [original_column(row, turn, columns), *columns],
        "title": f"{'Compare' if compares else 'Edit'} and rerun" if may_run else "Compare",
        "may_run": may_run,
        "blank": Column(MAX_COLUMNS + 1, row.model),
        "editors": editors.request_editors(base),
        "base": base,
        "history": editors.history_titles(row),
        "models": _models(row, columns),
        "efforts": EFFORTS,
        "item_templates": TEMPLATES,
        "mode": mode_of(request),
        "max_columns": MAX_COLUMNS,
    }
    return render(request, "web/rerun.html", context)


def _models(row: Response, columns: Sequence[Column]) -> list[str]:
    """Return the served models that the project may use, and the aliases of these in the columns."""
    key = ApiKey.of_project(row.project)
    names = [*manager.current().served, row.model, *(column.model for column in columns)]
    return sorted({name for name in names if (served := model_access.find(name)) and model_access.can_use(key, served.name)})


@private("GET", "HEAD")
def column(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/rerun/column?run=ID, the result of a run as a fragment."""
    row = get_response(request, uid)
    run = get_response(request, request.GET.get("run", ""))
    shown = run_column(number(request, "place", 1), run, load_turn(row), mode_of(request))
    return render(request, "web/rerun_result.html", {"column": shown, "row": row, "may_run": True})


@private("GET", "HEAD")
def context(request: HttpRequest, uid: str) -> HttpResponse:
    """Return GET /responses/ID/rerun/context?until=ITEM as JSON: the request that continues behind the item.

    Without `until` this is the request itself. `end` is the number of items of which the latest have editors, or references to all
    with `references`.
    """
    row = get_response(request, uid)
    found = editors.context_until(row, load_turn(row), request.GET.get("until", ""))
    if found is None:
        raise Http404("This response has no such item.")
    previous, items = found
    end = number(request, "end", len(items))
    if "references" in request.GET:
        return JsonResponse({"items": editors.references(items[:end])})
    earlier, shown = editors.latest_editors(items, end)
    return JsonResponse({"previous": previous, "earlier": earlier, "items": [asdict(item) for item in shown]})


@login_required
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Redirect GET /responses/compare?a=ID&b=ID, the address of an earlier page."""
    first, second = (request.GET.get(name, "").strip() for name in ("a", "b"))
    if not first and not second:
        return redirect("responses")
    row = get_response(request, first or second)
    query = f"?column={get_response(request, second).uid}" if first and second else ""
    return redirect(reverse("response-rerun", args=(row.uid,)) + query)
