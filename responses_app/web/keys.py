"""The key page: keys of the projects a person belongs to; to be made, which shows the secret once, renamed and revoked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from responses_app.models import ApiKey
from responses_app.web.person import belongs, projects

LONGEST = 100


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET and POST /keys. The secret is in the answer to POST alone; no other page can show it again."""
    secret = _made(request) if request.method == "POST" else None
    context: dict[str, Any] = {
        "section": "keys",
        "keys": _mine(request).order_by("revoked_at", "project", "-created_at"),
        "projects": projects(request.user),
        "secret": secret,
        "base_url": request.build_absolute_uri("/v1"),
    }
    return render(request, "web/keys.html", context)


@never_cache
@login_required
@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """POST /keys/N/rename."""
    key = get_object_or_404(_mine(request), pk=pk)
    key.name = _word(request, "name") or key.name
    key.save(update_fields=["name"])
    return redirect("keys")


@never_cache
@login_required
@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """POST /keys/N/revoke."""
    key = get_object_or_404(_mine(request), pk=pk)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        messages.success(request, f"{key.name} is revoked. A process that has just seen it may take it for half a minute more.")
    return redirect("keys")


def _made(request: HttpRequest) -> str | None:
    name, project = _word(request, "name"), _word(request, "project")
    if not name or not project:
        messages.error(request, "A key needs a name and a project.")
        return None
    if not belongs(request.user, project):
        messages.error(request, "You do not belong to that project.")
        return None
    _, secret = ApiKey.make(name, project)
    return secret


def _mine(request: HttpRequest) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project__in=projects(request.user))


def _word(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "").replace("\0", "").strip()[:LONGEST]
