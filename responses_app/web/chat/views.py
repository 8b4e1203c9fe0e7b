"""Views of the chat page: the HTML page, the list of threads, and threads as JSON for JavaScript."""

from __future__ import annotations

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from responses_app.access import browser_key, permissions
from responses_app.runs import manager
from responses_app.runs.ids import is_id
from responses_app.utils.user_model import User
from responses_app.web.chat import threads as chat_threads
from responses_app.web.chat import turns as chat_turns
from responses_app.web.chat.offers import offers
from responses_app.web.models import real_model_command
from responses_app.web.private import private
from responses_app.web.render.item_blocks import TEMPLATES
from responses_app.web.response import detail
from responses_app.web.response.outcome import ending_of
from responses_app.web.response.properties import request_properties
from responses_app.web.response.timelines.times import times_of
from responses_app.web.responses.rows import ResponseStats
from responses_app.web.roles import check_role, needed_role

# In ascending order.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Name in the session.
EVERYTHING = "chat shows everything"
# The tools of static/web/chat/tools.js, which run in the browser.
TOOLS = ("clock", "dice", "calculator", "weather")


@private("GET")
def new(request: HttpRequest) -> HttpResponse:
    """Render an empty thread at GET /chat, or redirect to the thread of `previous_response_id`."""
    if previous := request.GET.get("previous_response_id"):
        return redirect("chat-thread", detail.get_response(request, previous).uid)
    return render(request, "chat.html", _page_context(request, _project(request)))


@private("GET")
def thread(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /chat/ID, the thread up to the response."""
    row = detail.get_response(request, uid)
    title = chat_threads.title_for(row, cast(User, request.user))
    return render(request, "chat.html", {**_page_context(request, row.project), "uid": uid, "title": title})


@private("GET")
def threads(request: HttpRequest) -> HttpResponse:
    """Render GET /chat/threads, the list of threads as an HTML fragment."""
    return render(request, "chat_threads.html", _list_context(request, _project(request)))


@private("GET")
def turns(request: HttpRequest, uid: str) -> HttpResponse:
    """Return GET /chat/ID/turns as JSON: the turns up to the response, with `newest` up to the newest continuation."""
    return JsonResponse(chat_turns.turns_of(detail.get_response(request, uid), newest="newest" in request.GET))


@private("GET")
def messages(request: HttpRequest, uid: str) -> HttpResponse:
    """Return GET /chat/ID/messages as JSON: the fragments of the messages in the input of the response, in order."""
    return JsonResponse({"messages": chat_turns.input_messages(detail.get_response(request, uid))})


@private("GET")
def times(request: HttpRequest, uid: str) -> HttpResponse:
    """Return GET /chat/ID/times as JSON: the times shown below an answer, and the reason of an incomplete answer."""
    row = detail.get_response(request, uid)
    return JsonResponse({**times_of(row), "ending": ending_of(row)})


@private("GET", "HEAD")
def inspector(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /chat/ID/inspector, the inspector of an answer as an HTML fragment."""
    row = detail.get_response(request, uid)
    context = {
        "row": row,
        "stats": ResponseStats(row),
        "properties": request_properties(row),
        "inspector_parts": detail.INSPECTOR_PARTS,
    }
    return render(request, "web/chat_inspector.html", context)


@private("GET")
def secret(request: HttpRequest) -> HttpResponse:
    """Return GET /chat/secret as JSON: the bearer token of the chat page for the public API."""
    return JsonResponse({"secret": browser_key.secret(cast(User, request.user), request.session, _project(request))})


def _page_context(request: HttpRequest, project: str) -> dict[str, Any]:
    return {
        **_list_context(request, project),
        "section": "chat",
        "projects": permissions.projects(request.user, needed_role(request)),
        "real_model_command": real_model_command(manager.current().served.values()),
        "efforts": EFFORTS,
        "tools": TOOLS,
        "item_templates": TEMPLATES,
        **offers(project),
    }


def _list_context(request: HttpRequest, project: str) -> dict[str, Any]:
    # Postgres text cannot contain NUL.
    words = request.GET.get("q", "").replace("\0", "").strip()
    before = request.GET.get("before", "")
    everything = _shows_everything(request)
    user = cast(User, request.user)
    query = chat_threads.ThreadQuery(project, user, everything, words, before if is_id(before) else "")
    page = chat_threads.page(permissions.visible_responses(request.user), query)
    return {"threads": page, "project": project, "q": words, "plain": not (words or before), "everything": everything}


def _shows_everything(request: HttpRequest) -> bool:
    """Return whether the list shows the responses of API keys and of other people too: the choice of the session."""
    choice = request.GET.get("everything")
    if choice in ("0", "1"):
        request.session[EVERYTHING] = choice == "1"
    return bool(request.session.get(EVERYTHING))


def _project(request: HttpRequest) -> str:
    """Return the project in the query, or the first project of the user. Raise PermissionDenied."""
    visible = permissions.projects(request.user)
    if not visible:
        raise PermissionDenied(permissions.NO_PROJECT)
    project = request.GET.get("project") or next(iter(permissions.projects(request.user, needed_role(request))), visible[0])
    if project not in visible:
        raise PermissionDenied("You’re not a member of this project.")
    check_role(request, project)
    return project
