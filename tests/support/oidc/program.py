"""Program of the provider: `python -m tests.support.oidc.program PORT FOLDER`. A small Django project on SQLite.

`/login` signs in the person of the form without a password. `/control` sets the address for the way back, the secret of the
client and the groups of a person.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

CLIENT_ID, CLIENT_SECRET = "verbatim", "a secret of the test"
GROUPS: dict[str, list[str]] = {}


class QuietHandler(WSGIRequestHandler):
    """Handler of requests that logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def configure(port: int, folder: Path) -> None:
    """Configure Django with a new RSA key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    settings.configure(
        SECRET_KEY="provider " * 8,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="tests.support.oidc.urls",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "provider.sqlite"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        SESSION_COOKIE_NAME="provider",
        LOGIN_URL="/login",
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        USE_TZ=True,
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": pem,
            "OIDC_ISS_ENDPOINT": f"http://localhost:{port}/o",
            "OAUTH2_VALIDATOR_CLASS": "tests.support.oidc.validator.Validator",
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "", "profile": "", "email": ""},
        },
    )
    django.setup()
    call_command("migrate", verbosity=0)


def log_in(request: HttpRequest) -> HttpResponse:
    """Sign in the person of the form, and go on to the page that asked."""
    from django.contrib.auth import login
    from django.contrib.auth.models import User

    if request.method != "POST":
        return HttpResponse('<form method="post"><input name="username"><button>Sign in</button></form>')
    user, _ = User.objects.get_or_create(username=request.POST["username"])
    login(request, user, "django.contrib.auth.backends.ModelBackend")
    return redirect(request.GET["next"])


def control(request: HttpRequest) -> HttpResponse:
    """Set the address for the way back with the secret of the client, and groups by person."""
    from oauth2_provider.models import Application

    values = json.loads(request.body)
    GROUPS.update(values.get("groups", {}))
    if callback := values.get("callback"):
        Application.objects.update_or_create(
            client_id=CLIENT_ID,
            defaults={
                "client_secret": values.get("client_secret", CLIENT_SECRET),
                "client_type": "confidential",
                "authorization_grant_type": "authorization-code",
                "algorithm": "RS256",
                "redirect_uris": callback,
                "skip_authorization": True,
            },
        )
    return HttpResponse("done")


def main(port: int, folder: Path) -> None:
    """Serve until the process ends."""
    configure(port, folder)
    from django.core.wsgi import get_wsgi_application

    make_server("127.0.0.1", port, get_wsgi_application(), handler_class=QuietHandler).serve_forever()


if __name__ == "__main__":
    # The URL configuration and the validator import this module by its name.
    sys.modules["tests.support.oidc.program"] = sys.modules["__main__"]
    main(int(sys.argv[1]), Path(sys.argv[2]))
