"""Django application configuration."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse

from project.pool import POOL, TIME_LIMITS

# Apps whose models and pages the pages of this app need.
NEEDED_APPS: Final = (
    *("django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"),
    *("django.contrib.messages", "django.contrib.staticfiles", "django.contrib.postgres"),
    *("allauth.account", "allauth.socialaccount", "responses_app.web.oidc"),
)
# Middleware without which the pages or the sign-in do not work.
NEEDED_MIDDLEWARE: Final = (
    *("responses_app.web.delivery.csp.middleware", "django.contrib.sessions.middleware.SessionMiddleware"),
    *("django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"),
    *("django.contrib.auth.middleware.AuthenticationMiddleware", "django.contrib.messages.middleware.MessageMiddleware"),
    "allauth.account.middleware.AccountMiddleware",
)
INCLUDE: Final = 'path("", include("project.urls"))'
PAGE: Final = "docs/operations/django-project.md"


class ResponsesConfig(AppConfig):
    """The Django application of the server."""

    name = "responses_app"
    verbose_name = "Verbatim"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        """Add the settings that the project lacks. Raises ImproperlyConfigured for unusable settings of the project."""
        super().__init__(app_name, app_module)
        if problem := settings_problem(settings):
            raise ImproperlyConfigured(f"responses_app cannot be used in this project: {problem} ({PAGE})")
        add_defaults(settings, vars(import_module("project.settings")))

    def ready(self) -> None:
        """Register the system checks of the project, and name a database that is away in a sentence."""
        if (logger := logging.getLogger("psycopg.pool")).level == logging.NOTSET:
            logger.setLevel(logging.ERROR)
        if sys.excepthook is sys.__excepthook__:
            sys.excepthook = show_exception
        register(check_account_model)
        register(check_urls)
        register(check_database, Tags.database)


def settings_problem(project: Any) -> str | None:
    """Return the first problem of the settings of a project with the remedy, or None."""
    engine = project.DATABASES.get("default", {}).get("ENGINE", "")
    if engine != "django.db.backends.postgresql":
        return (
            f"its tables are in the database `default`, which must be django.db.backends.postgresql, not {engine!r}; "
            "give the other database another alias"
        )
    for name, needed in (("INSTALLED_APPS", NEEDED_APPS), ("MIDDLEWARE", NEEDED_MIDDLEWARE)):
        if missing := [entry for entry in needed if entry not in getattr(project, name)]:
            return f"{name} lacks {', '.join(missing)}; add the missing entries"
    return None


def add_defaults(project: Any, defaults: dict[str, Any]) -> None:
    """Add the settings of `defaults` that the project does not have, the storage of files, the templates and the pool."""
    for name, value in defaults.items():
        if name.isupper() and not project.is_overridden(name):
            setattr(project, name, value)
    project.STORAGES.setdefault("files", defaults["STORAGES"]["files"])
    if (folder := defaults["TEMPLATES"][0]["DIRS"][0]) not in project.TEMPLATES[0]["DIRS"]:
        project.TEMPLATES[0]["DIRS"] = [*project.TEMPLATES[0]["DIRS"], folder]
    options = project.DATABASES["default"].setdefault("OPTIONS", {})
    for name, value in {**TIME_LIMITS, "pool": POOL}.items():
        options.setdefault(name, value)


def show_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Write a sentence in place of the traceback of a database that is away, which ends a command of Django or of an app."""
    from django.db import OperationalError

    if isinstance(error, OperationalError) and "--traceback" not in sys.argv:
        from responses_app.store.database_problems import unreachable_problem

        if problem := unreachable_problem():
            sys.stderr.write(f"{sys.argv[0]}: {problem}.\n")
            return
    sys.__excepthook__(kind, error, traceback)


def check_account_model(**_options: Any) -> list[CheckMessage]:
    """Check that AUTH_USER_MODEL is a subclass of AbstractUser, with user names, groups and the flags of the staff."""
    # Imported here, as models cannot be imported before the apps.
    from django.contrib.auth.models import AbstractUser

    if issubclass(get_user_model(), AbstractUser):
        return []
    sentence = f"The pages cannot use AUTH_USER_MODEL {settings.AUTH_USER_MODEL}, which is no subclass of AbstractUser."
    return [
        Error(sentence, hint=f"Derive the model from django.contrib.auth.models.AbstractUser ({PAGE}).", id="verbatim.E001")
    ]


def check_urls(**_options: Any) -> list[CheckMessage]:
    """Check that the project has the URLs of the server."""
    try:
        reverse("responses")
    except NoReverseMatch:
        return [Error("The URLs lack those of this server.", hint=f"Add {INCLUDE}.", id="verbatim.E002")]
    return []


def check_database(*, databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Check that the database accepts a connection. `migrate` and `check --database default` run this check."""
    from responses_app.store.database_problems import connection_problem, remedy

    if "default" not in (databases or ()) or not (problem := connection_problem()):
        return []
    return [Error(f"The database does not answer ({problem}).", hint=f"{remedy(problem)}.", id="verbatim.E004")]
