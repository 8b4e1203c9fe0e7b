"""Sign-in pages: with a password, or with a link, valid for a single use within 15 minutes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from responses_app.installation.data_dir import MANAGE
from responses_app.store import audit_log
from responses_app.utils.user_model import User
from responses_app.web.accounts import login_throttle

OPERATOR = "operator"
SALT = "sign-in link with password"
VALID_SECONDS = 15 * 60
LINK_REFUSED = f"This sign-in link has expired or was already used. Sign in below, or run {MANAGE} signin for a new link."
NO_PASSWORDS = "This server accepts no passwords. Sign in with the sign-in provider."
BACKEND = "django.contrib.auth.backends.ModelBackend"


class AccountLogin(LoginView):
    """Sign-in form at GET and POST /sign-in, with a limit of password attempts."""

    template_name = "web/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the name of the sign-in provider, and whether passwords are accepted."""
        provider = settings.RESPONSES_OIDC.name if settings.RESPONSES_OIDC.issuer else ""
        return super().get_context_data(**context, provider=provider, local=settings.RESPONSES_LOCAL_SIGN_IN)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign in, or answer 429 before the password check after too many attempts."""
        if not settings.RESPONSES_LOCAL_SIGN_IN:
            raise PermissionDenied(NO_PASSWORDS)
        name = request.POST.get("username", "")
        wait = login_throttle.register(name, audit_log.address_of(request))
        if wait is not None:
            audit_log.record_throttled_sign_in(request, name)
            return self._too_many_attempts(wait)
        response = super().post(request, *args, **kwargs)
        if request.user.is_authenticated:
            login_throttle.clear(name, audit_log.address_of(request))
        return response

    def _too_many_attempts(self, wait: timedelta) -> HttpResponse:
        minutes = math.ceil(wait.total_seconds() / 60)
        form = self.get_form_class()(self.request)
        message = f"Too many sign-in attempts. Try again in {minutes} minute{'' if minutes == 1 else 's'}."
        response = self.render_to_response(self.get_context_data(form=form, refused=message), status=429)
        response["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return response


with_account = AccountLogin.as_view()


@never_cache
@require_GET
def to_admin(request: HttpRequest) -> HttpResponse:
    """Redirect GET /admin/login/ to the sign-in page: a single page accepts passwords and counts attempts."""
    if request.user.is_authenticated:
        raise PermissionDenied("This account doesn’t have access to the admin.")
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


def operator() -> User:
    """Return the operator's account, a superuser. Create the account without a usable password."""
    user, is_new = User.objects.get_or_create(username=OPERATOR, defaults={"is_superuser": True, "is_staff": True})
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def link(user: User) -> str:
    """Return the path of a sign-in link for `user`.

    The link contains `last_login` and a digest of the password: it is invalid after the first use, and after a new password.
    """
    value = [user.pk, _stamp(user.last_login), user.get_session_auth_hash()]
    return reverse("sign-in-link", args=[signing.dumps(value, salt=SALT)])


@never_cache
@require_GET
def with_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in at GET /sign-in/TOKEN and redirect to the start page."""
    user = _redeem(token)
    if user is None:
        if request.user.is_authenticated:
            return redirect(settings.LOGIN_REDIRECT_URL)
        messages.error(request, LINK_REFUSED)
        return redirect("sign-in")
    login(request, user, BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


def _redeem(token: str) -> User | None:
    """Return the user of `token`, or None for an invalid token. The UPDATE matches only the first of concurrent uses."""
    try:
        pk, stamp, digest = signing.loads(token, salt=SALT, max_age=VALID_SECONDS)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=pk).first()
    if user is None:
        return None
    digests = user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()
    if not any(constant_time_compare(digest, one) for one in digests):
        return None
    last_login = datetime.fromisoformat(stamp) if stamp else None
    unused = User.objects.filter(pk=pk, is_active=True, password=user.password, last_login=last_login)
    return User.objects.get(pk=pk) if unused.update(last_login=timezone.now()) else None


def _stamp(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""
