"""Members page: the admins of a project add and remove members, and change their roles."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from responses_app.access.permissions import has_role, projects
from responses_app.models import Membership, Role
from responses_app.store import audit_log
from responses_app.utils.user_model import User
from responses_app.web.private import private
from responses_app.web.roles import check_role

BY_PROVIDER = "This role comes from the groups of the sign-in provider. Change the groups there."


class RoleForm(forms.Form):
    """Form for the role of a member."""

    role = forms.TypedChoiceField(choices=Role.choices, coerce=int, initial=Role.MEMBER)


class MemberForm(RoleForm):
    """Form to add a member by the name of the account."""

    username = forms.CharField(max_length=150)

    def clean_username(self) -> User:
        """Return the account. Reject unknown names."""
        user = User.objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError("No active account has this name.")
        return user


@private("GET", "HEAD", "POST")
def index(request: HttpRequest) -> HttpResponse:
    """List the members of `project` and add a member at GET and POST /members?project=NAME. The default is the first."""
    names = projects(request.user, Role.ADMIN)
    project = request.GET.get("project", "").replace("\0", "") or next(iter(names), "")
    check_role(request, project)
    form = MemberForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        membership, is_new = Membership.objects.get_or_create(user=user, project=project, defaults={"role": role})
        if is_new:
            _record(request, "membership.create", membership)
        else:
            messages.error(request, f"{user} is already a member.")
        return redirect(_url(project))
    members = Membership.objects.filter(project=project).select_related("user").order_by("user__username")
    context = {
        "section": "keys",
        "project": project,
        "projects": names,
        "members": members,
        "form": form,
        "roles": Role.choices,
    }
    return render(request, "web/members.html", context)


@private("POST")
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the role of a member, or remove the member, at POST /members/N by the field `action`."""
    visible = Membership.objects.filter(project__in=projects(request.user))
    membership = get_object_or_404(visible.select_related("user"), pk=pk)
    check_role(request, membership.project)
    form = RoleForm(request.POST)
    if membership.by_provider:
        messages.error(request, BY_PROVIDER)
    elif request.POST.get("action") == "remove":
        _record(request, "membership.delete", membership)
        membership.delete()
    elif form.is_valid():
        membership.role = form.cleaned_data["role"]
        membership.save(update_fields=["role"])
        _record(request, "membership.change", membership)
        messages.success(request, f"{membership.user} is now {membership.role_name}.")
    # A person who gave up the own role may not see the page any more.
    is_admin = has_role(request.user, membership.project, Role.ADMIN)
    return redirect(_url(membership.project) if is_admin else "keys")


def _record(request: HttpRequest, action: str, membership: Membership) -> None:
    what = f"membership {membership}: {membership.role_name}"
    audit_log.record(audit_log.actor_of(request), action, what, membership.project)


def _url(project: str) -> str:
    return f"{reverse('members')}?{urlencode({'project': project})}"
