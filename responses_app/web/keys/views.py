"""Key pages: list, create, change and revoke the API keys of the user's projects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control

from responses_app.access.permissions import has_role, projects
from responses_app.models import ApiKey, Role
from responses_app.store import audit_log
from responses_app.utils.url_prefix import api_url
from responses_app.web.keys import new_secret
from responses_app.web.keys.form import KeyForm, NewKeyForm
from responses_app.web.private import private
from responses_app.web.roles import needed_role

# Hours that the secret before a rotation stays valid, and what the page says.
ROTATION_HOURS: Final = {"0": "Not at all", "1": "1 hour", "24": "1 day", "168": "7 days", "720": "30 days"}
STILL_VALID = (
    "The secret was not changed again: a new secret ends the former one, which is still valid. Open “Rotate…” to confirm."
)
NO_MEMBER = "To create keys you need the role “member” in a project. Ask an admin of the project."


@private("GET", "HEAD", "POST")
def index(request: HttpRequest) -> HttpResponse:
    """List keys and create a key at GET and POST /keys. Only the first page after the POST shows the secret."""
    form = NewKeyForm(request.user, _post_data(request))
    if form.is_bound and not form.projects:
        raise PermissionDenied(NO_MEMBER)
    if form.is_bound and form.is_valid():
        key, secret = form.create_key()
        new_secret.put(request, secret)
        _record(request, "key.create", key)
        messages.success(request, f"{key.name} was created.")
        return redirect("keys")
    context: dict[str, Any] = {
        "section": "keys",
        "keys": _keys_of_user(request)
        .select_related("owner")
        .order_by(F("revoked_at").desc(nulls_first=True), "project", "-created_at"),
        "form": form,
        "secret": new_secret.take(request),
        "base_url": api_url(request),
    }
    page = render(request, "web/keys.html", context)
    if context["secret"]:
        patch_cache_control(page, no_transform=True)
    return page


@private("GET", "HEAD", "POST")
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the name and the limits of a key at GET and POST /keys/N."""
    key = get_object_or_404(_keys_of_user(request), pk=pk)
    form = KeyForm(_post_data(request), instance=key)
    if not has_role(request.user, key.project, Role.ADMIN):
        form.keep_limits()
    if form.is_bound and form.is_valid():
        # Other columns may have changed meanwhile, such as `last_used_at` and `revoked_at`.
        form.instance.save(update_fields=KeyForm.Meta.fields)
        _record(request, "key.change", key)
        messages.success(request, f"{key.name} was updated. Its old limits may apply for up to 30 seconds.")
        return redirect("keys")
    return render(
        request, "web/key.html", {"section": "keys", "key": get_object_or_404(_keys_of_user(request), pk=pk), "form": form}
    )


@private("GET", "HEAD", "POST")
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a confirmation page at GET /keys/N/revoke, and revoke the key at POST."""
    key = get_object_or_404(_keys_of_user(request), pk=pk)
    if request.method != "POST" and key.revoked_at is None:
        return render(request, "web/key_revoke.html", {"section": "keys", "key": key})
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        _record(request, "key.revoke", key)
        messages.success(request, f"{key.name} was revoked. It may keep working for up to 30 seconds.")
    return redirect("keys")


@private("GET", "HEAD", "POST")
def rotate(request: HttpRequest, pk: int) -> HttpResponse:
    """Show at GET /keys/N/rotate how long the old secret stays valid, and replace the secret at POST.

    A secret that is still valid from an earlier rotation ends only with the field `end_old`, so that a second click ends none.
    """
    key = get_object_or_404(_keys_of_user(request).filter(revoked_at=None), pk=pk)
    hours = request.POST.get("hours", "")
    if request.method != "POST" or hours not in ROTATION_HOURS:
        return render(request, "web/key_rotate.html", {"section": "keys", "key": key, "hours": ROTATION_HOURS})
    if key.keeps_old_secret and "end_old" not in request.POST:
        messages.error(request, STILL_VALID)
        return redirect("keys")
    new_secret.put(request, key.rotate(timezone.now() + timedelta(hours=int(hours))))
    _record(request, "key.rotate", key)
    validity = f"stays valid for {ROTATION_HOURS[hours]}" if int(hours) else "may keep working for up to 30 seconds"
    messages.success(request, f"{key.name} has a new secret. The old secret {validity}.")
    return redirect("keys")


def _record(request: HttpRequest, action: str, key: ApiKey) -> None:
    audit_log.record(audit_log.actor_of(request), action, f"key {key.pk} {key}", key.project)


def _post_data(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _keys_of_user(request: HttpRequest) -> QuerySet[ApiKey]:
    """Return the keys that the user may change: all of the own projects for an admin, and the own keys for a member."""
    keys = Q(owner=request.user.pk, project__in=projects(request.user, needed_role(request)))
    return ApiKey.objects.filter(keys | Q(project__in=projects(request.user, Role.ADMIN)))
