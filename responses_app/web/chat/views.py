"""The chat page: a shell that the server renders, the list of threads beside it, and a thread as JSON for its modules."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from responses_app.access import browser_key, permissions
from responses_app.runs import manager
from responses_app.runs.ids import is_id
from responses_app.web.chat import threads as chat_threads
from responses_app.web.chat import times as chat_times
from responses_app.web.chat import turns as chat_turns
from responses_app.web.response import detail

# In the order of how much a model thinks.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# As in static/web/chat/tools.js, which runs them.
TOOLS = ("clock", "dice", "calculator", "weather")


@never_cache
@login_required
@require_GET
def new(request: HttpRequest) -> HttpResponse:
    """GET /chat: a thread that has not begun; with `previous_response_id`, one that goes on from there."""
    if previous := request.GET.get("previous_response_id"):
        return redirect("chat-thread", detail.get_response(request, previous).uid)
    return render(request, "chat.html", _shell(request, _project(request)))


@never_cache
@login_required
@require_GET
def thread(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /chat/{id}: the thread up to this response."""
    row = detail.get_response(request, uid)
    title = chat_threads.titles([row])[row.pk]
    return render(request, "chat.html", {**_shell(request, row.project), "uid": uid, "title": title})


@never_cache
@login_required
@require_GET
def threads(request: HttpRequest) -> HttpResponse:
    """GET /chat/threads: the list alone."""
    return render(request, "chat_threads.html", _list(request, _project(request)))


@never_cache
@login_required
@require_GET
def turns(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /chat/{id}/turns: the thread up to this response; with `newest`, on to the newest that follows it."""
    return JsonResponse(chat_turns.turns_of(detail.get_response(request, uid), newest="newest" in request.GET))


@never_cache
@login_required
@require_GET
def times(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /chat/{id}/times: the figures under an answer, by the times of its log."""
    return JsonResponse(chat_times.told([detail.get_response(request, uid)])[uid])


@never_cache
@login_required
@require_GET
def secret(request: HttpRequest) -> HttpResponse:
    """GET /chat/secret: what the page bears when it asks the public API, as any client does."""
    return JsonResponse({"secret": browser_key.secret(cast(User, request.user), request.session, _project(request))})


def _shell(request: HttpRequest, project: str) -> dict[str, Any]:
    return {
        **_list(request, project),
        "section": "chat",
        "projects": permissions.projects(request.user),
        "models": list(manager.current().served.values()),
        "efforts": EFFORTS,
        "tools": TOOLS,
    }


def _list(request: HttpRequest, project: str) -> dict[str, Any]:
    # Text of the database has no NUL.
    words = request.GET.get("q", "").replace("\0", "").strip()
    before = request.GET.get("before", "")
    page = chat_threads.page(permissions.visible_responses(request.user), project, words, before if is_id(before) else "")
    return {"threads": page, "project": project, "q": words, "plain": not (words or before)}


def _project(request: HttpRequest) -> str:
    """The project that was asked for, or the first one. Raises PermissionDenied."""
    mine = permissions.projects(request.user)
    project = request.GET.get("project") or next(iter(mine), "")
    if not mine:
        raise PermissionDenied(permissions.NO_PROJECT)
    if project not in mine:
        raise PermissionDenied("You’re not a member of this project.")
    return project
