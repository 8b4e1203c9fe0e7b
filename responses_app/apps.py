"""Django application configuration."""

from __future__ import annotations

from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# Apps whose models and pages the pages of this app need.
NEEDED_APPS: Final = (
    *("django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"),
    *("django.contrib.messages", "django.contrib.staticfiles", "django.contrib.postgres"),
    *("allauth.account", "allauth.socialaccount", "responses_app.web.oidc"),
)
PAGE: Final = "docs/operations/django-project.md"


class ResponsesConfig(AppConfig):
    """The Django application of the server."""

    name = "responses_app"
    verbose_name = "Verbatim"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Import the models. Raises ImproperlyConfigured for unusable settings of the project."""
        if problem := settings_problem(settings):
            raise ImproperlyConfigured(f"responses_app cannot be used in this project: {problem} ({PAGE})")
        super().import_models()


def settings_problem(project: Any) -> str | None:
    """Return the first problem of the settings of a project, and its remedy, or None."""
    if not hasattr(project, "RESPONSES_MODELS"):
        return "its settings are missing; begin the settings with `from project.settings import *`"
    engine = project.DATABASES.get("default", {}).get("ENGINE", "")
    if engine != "django.db.backends.postgresql":
        return f"the database `default` must be django.db.backends.postgresql, not {engine!r}; set DATABASE_URL, not DATABASES"
    if project.AUTH_USER_MODEL != "auth.User":
        return f"AUTH_USER_MODEL must be auth.User, not {project.AUTH_USER_MODEL!r}"
    if missing := [name for name in NEEDED_APPS if name not in project.INSTALLED_APPS]:
        return f"INSTALLED_APPS lacks {', '.join(missing)}; add your apps with INSTALLED_APPS = [*INSTALLED_APPS, …]"
    return None
