"""Signing in: with an account, or with a link that works once for a few minutes; and signing out."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from responses_app.web.accounts import login_throttle

OPERATOR = "operator"
SALT = "sign-in link"
VALID_SECONDS = 15 * 60
LINK_REFUSED = (
    "This sign-in link has expired or was already used. Sign in with a password, or run manage.py signin for a new link."
)
BACKEND = "django.contrib.auth.backends.ModelBackend"


class AccountLogin(LoginView):
    """GET and POST /sign-in: a name and a password, of which nobody may try many."""

    template_name = "web/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Refused before the password is looked at, if there were too many."""
        name = request.POST.get("username", "")
        wait = login_throttle.register(name, _address(request))
        if wait is not None:
            return self._refused(wait)
        answer = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            login_throttle.clear(name, _address(request))
        return answer

    def _refused(self, wait: timedelta) -> HttpResponse:
        minutes = math.ceil(wait.total_seconds() / 60)
        form = self.get_form_class()(self.request)
        told = f"Too many sign-in attempts. Try again in {minutes} minute{'' if minutes == 1 else 's'}."
        answer = self.render_to_response(self.get_context_data(form=form, refused=told), status=429)
        answer["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return answer


with_account = AccountLogin.as_view()


@never_cache
@require_GET
def to_admin(request: HttpRequest) -> HttpResponse:
    """GET /admin/login/: there is one door with a password, and one count of the attempts at it."""
    if request.user.is_authenticated:
        raise PermissionDenied("This account doesn’t have access to the admin.")
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


def operator() -> User:
    """The account of whoever starts the server: it sees everything and has no password unless it is given one."""
    user, new = User.objects.get_or_create(username=OPERATOR, defaults={"is_superuser": True, "is_staff": True})
    if new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def link(user: User) -> str:
    """The path that signs this person in, once. It is bound to the last time they signed in, so that using it ends it."""
    return reverse("sign-in-link", args=[signing.dumps([user.pk, _stamp(user.last_login)], salt=SALT)])


@never_cache
@require_GET
def with_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET /sign-in/TOKEN."""
    user = _redeem(token)
    if user is None:
        messages.error(request, LINK_REFUSED)
        return redirect("sign-in")
    login(request, user, BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


def _redeem(token: str) -> User | None:
    """Whom the token signs in. Two that come at once with the same one do not both get in: the update finds its row once."""
    try:
        pk, stamp = signing.loads(token, salt=SALT, max_age=VALID_SECONDS)
    except signing.BadSignature:
        return None
    last = datetime.fromisoformat(stamp) if stamp else None
    fresh = User.objects.filter(pk=pk, is_active=True, last_login=last).update(last_login=timezone.now())
    return User.objects.get(pk=pk) if fresh else None


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def _stamp(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""
