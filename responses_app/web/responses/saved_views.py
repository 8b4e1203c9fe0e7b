"""Saved views of the response list: filters under a name, for one user."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from responses_app.models import SavedView
from responses_app.utils.user_model import User
from responses_app.web.private import private
from responses_app.web.responses.filters import given_filters

MAX_VIEWS = 20
MAX_NAME_CHARS = 60
MAX_QUERY_CHARS = 2_000


@private("POST")
def save(request: HttpRequest) -> HttpResponse:
    """Save the filters in `query` under `name` at POST /responses/views. The same name replaces a view, the same filters rename it."""
    name = request.POST.get("name", "").replace("\0", "").strip()[:MAX_NAME_CHARS]
    given = QueryDict(request.POST.get("query", "").replace("\0", "")[:MAX_QUERY_CHARS])
    query = urlencode(given_filters(given))
    views = SavedView.objects.filter(user=cast(User, request.user))
    if not name or not query:
        messages.error(request, "A view needs a name and at least one filter.")
    elif not views.filter(Q(name=name) | Q(query=query)).exists() and views.count() >= MAX_VIEWS:
        messages.error(request, f"You have {MAX_VIEWS} views, which is the limit. Delete one first.")
    else:
        views.filter(query=query).exclude(name=name).delete()
        views.update_or_create(user=cast(User, request.user), name=name, defaults={"query": query})
    return redirect(f"{reverse('responses')}?{query}".rstrip("?"))


@private("POST")
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a view of the user at POST /responses/views/N/delete."""
    SavedView.objects.filter(user=cast(User, request.user), pk=pk).delete()
    return redirect("responses")
