"""Django application configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ResponsesConfig(AppConfig):
    """The Django application of the server."""

    name = "responses_app"
    verbose_name = "Verbatim"
    default_auto_field = "django.db.models.BigAutoField"
