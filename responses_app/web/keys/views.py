"""The key page: keys of the projects a person belongs to. They are created, which shows the secret once, changed and revoked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from responses_app.access.permissions import projects
from responses_app.models import ApiKey
from responses_app.web.keys import new_secret
from responses_app.web.keys.form import KeyForm, NewKeyForm


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET and POST /keys. The page behind a POST shows the secret; no later one can."""
    form = NewKeyForm(request.user, _sent(request))
    if form.is_bound and form.is_valid():
        new_secret.put(request, form.make())
        return redirect("keys")
    context: dict[str, Any] = {
        "section": "keys",
        "keys": _mine(request).order_by(F("revoked_at").desc(nulls_first=True), "project", "-created_at"),
        "form": form,
        "secret": new_secret.take(request),
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
        messages.success(request, f"{key.name} was updated. Its old limits may apply for up to 30 seconds.")
        return redirect("keys")
    return render(request, "web/key.html", {"section": "keys", "key": get_object_or_404(_mine(request), pk=pk), "form": form})


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """GET and POST /keys/N/revoke: a question, and what is done after a yes."""
    key = get_object_or_404(_mine(request), pk=pk)
    if request.method != "POST" and key.revoked_at is None:
        return render(request, "web/key_revoke.html", {"section": "keys", "key": key})
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        messages.success(request, f"{key.name} was revoked. It may keep working for up to 30 seconds.")
    return redirect("keys")


def _sent(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _mine(request: HttpRequest) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project__in=projects(request.user))
