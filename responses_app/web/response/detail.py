"""Common parts of all pages of a response: lookup with permission, header, tabs."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.access.permissions import has_role, visible_responses
from responses_app.models import Response, Role
from responses_app.runs.ids import is_id
from responses_app.store import audit_log
from responses_app.store.log import reader
from responses_app.web.response.properties import request_properties
from responses_app.web.response.selection.selected import selected_item
from responses_app.web.responses.numbers import parse_number
from responses_app.web.responses.rows import ResponseStats, question_of
from responses_app.web.roles import check_role

TABS = (
    ("response", "Conversation"),
    ("response-events", "Events"),
    ("response-wire", "Request"),
    ("response-prompt", "Prompt"),
    ("response-cache", "Cache"),
    ("response-chain", "Chain"),
    ("response-check", "Validation"),
)
# Views that the inspector shows beside the conversation and in the chat. They are tabs where it has no room, or no JavaScript.
INSPECTOR_PARTS = [
    (name, dict(TABS)[name]) for name in ("response-wire", "response-events", "response-prompt", "response-cache")
]
# Links to the newest reruns of a response.
MAX_RERUNS = 8
MISSING = (
    "No response with this ID in your projects. It may have been deleted, or was never stored: "
    "messages and chat completions are stored only on request."
)


def get_response(request: HttpRequest, uid: str) -> Response:
    """Return the response, if visible to the user. Raise Http404, or PermissionDenied without the role that the page needs.

    The audit log gets an entry, unless the user made the request.
    """
    row = visible_responses(request.user).select_related("key", "conversation").filter(uid=uid).first() if is_id(uid) else None
    if row is None:
        raise Http404(MISSING)
    check_role(request, row.project)
    if row.user_id != request.user.pk:
        audit_log.record_once(audit_log.actor_of(request), "response.read", f"response {row.uid}", row.project)
    return row


def render_page(request: HttpRequest, row: Response, tab: str, template: str, **context: Any) -> HttpResponse:
    """Render a page of the response with header and tabs. `tab` is the URL name of the current tab."""
    common = {
        "section": "responses",
        "row": row,
        "stats": ResponseStats(row),
        "question": question_of(row),
        "tabs": TABS,
        "inspector_parts": INSPECTOR_PARTS if tab == "response" else [],
        "tab": tab,
        "tab_title": dict(TABS).get(tab, "Delete"),
        "is_member": has_role(request.user, row.project, Role.MEMBER),
        "running": row.ended_at is None,
        "previous_uid": row.previous_uid or _before_in_conversation(request, row),
        "reruns": reruns_of(row),
        "properties": request_properties(row),
        "selected": context["selected"] if "selected" in context else selected_item(row, request.GET.get("selected", "")),
        "end": reader.last_number(row.pk),
    }
    return render(request, template, {**common, **context})


def _before_in_conversation(request: HttpRequest, row: Response) -> str:
    if row.conversation_id is None:
        return ""
    earlier = visible_responses(request.user).filter(conversation_id=row.conversation_id, pk__lt=row.pk).order_by("-pk")
    return earlier.values_list("uid", flat=True).first() or ""


def reruns_of(row: Response) -> list[str]:
    """Return the ids of the newest runs of the response's request."""
    rows = Response.objects.filter(project=row.project, rerun_of=row.uid).order_by("-pk")
    return list(rows.values_list("uid", flat=True)[:MAX_RERUNS])


def number(request: HttpRequest, name: str, default: int = -1) -> int:
    """Return a number in the query string, or the default."""
    value = parse_number(request.GET.get(name, ""), 2**31 - 1)
    return default if value is None else value
