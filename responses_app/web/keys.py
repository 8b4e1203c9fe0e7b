"""The key page: keys of the projects a person belongs to; to be made, which shows the secret once, changed and revoked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from responses_app.models import ApiKey
from responses_app.web.key_form import KeyForm, NewKeyForm
from responses_app.web.person import projects


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET and POST /keys. The secret is in the answer to POST alone; no other page can show it again."""
    form, secret = NewKeyForm(request.user, _sent(request)), None
    if form.is_bound and form.is_valid():
        secret = form.make()
        form = NewKeyForm(request.user)
    context: dict[str, Any] = {
        "section": "keys",
        "keys": _mine(request).order_by("revoked_at", "project", "-created_at"),
        "form": form,
        "secret": secret,
        "base_url": request.build_absolute_uri("/v1"),
    }
    return render(request, "web/keys.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """GET and POST /keys/N: its name and its limits."""
    key = get_object_or_404(_mine(request), pk=pk)
    form = KeyForm(_sent(request), instance=key)
    if form.is_bound and form.is_valid():
        # The other columns may have changed meanwhile: it may be used, or revoked.
        form.instance.save(update_fields=KeyForm.Meta.fields)
        messages.success(request, f"{key.name} is changed. A process that has just seen it may go by the old limits for half a minute.")
        return redirect("keys")
    return render(request, "web/key.html", {"section": "keys", "key": get_object_or_404(_mine(request), pk=pk), "form": form})


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


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _mine(request: HttpRequest) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project__in=projects(request.user))
